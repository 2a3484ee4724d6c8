/* The simulated NVIDIA driver: what its parts share.
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SIM_H
#define SIM_H

/* The header's macros would rename the unversioned entry points: here every one is defined by its own name. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include "nvml.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define SIM_MAX_GPUS 64
#define SIM_MAX_SLICES 8
#define EXPORT __attribute__((visibility("default")))

enum sim_access { SIM_READ, SIM_MUTATE };

/* A device handle is a GPU, or with gi >= 0 one compute instance of it (a "MIG device"). */
struct nvmlDevice_st {
    int gpu;
    int gi, ci;
    json_int_t created; /* tells a re-created instance from the one that the handle was made for */
};
struct nvmlGpuInstance_st {
    int gpu;
    unsigned int id;
    json_int_t created;
};
struct nvmlComputeInstance_st {
    int gpu;
    unsigned int gi, id;
    json_int_t created;
};

/* One entry into the library: the lock is held and the state is loaded between begin and end. */
struct sim_call {
    const char *name;
    enum sim_access access;
    int gpu;           /* -1: the call concerns no GPU */
    json_t *arguments; /* for the log of mutating calls */
};

nvmlReturn_t sim_begin(struct sim_call *call, const char *name, enum sim_access access, nvmlDevice_t device);
nvmlReturn_t sim_begin_gpu(struct sim_call *call, const char *name, enum sim_access access, int gpu);
nvmlReturn_t sim_end(struct sim_call *call, nvmlReturn_t result);
void sim_argument(struct sim_call *call, const char *name, json_int_t value);

/* paths.c */
const char *sim_path(const char *path); /* below the root of the TEST build; a static buffer per use */
unsigned int sim_uid(void);

/* store.c: files of the simulated machine; valid between sim_begin and sim_end */
bool sim_store_open(void);
json_t *sim_hardware(void);
json_t *sim_modules(void);
const char *sim_loaded_version(void);
json_t *sim_driver_state(void);
json_t *sim_gpu_state(int gpu);
json_t *sim_inforom(int gpu);
void sim_inforom_changed(void);
json_t *sim_small_file(const char *path); /* new reference, or NULL */
bool sim_lock(enum sim_access access);
void sim_unlock(bool commit);
bool sim_commit_failed(void);
json_int_t sim_next_serial(void);

/* hardware.c: what does not change */
int sim_gpu_count(void);
json_t *sim_gpu(int gpu);
json_t *sim_profile(int gpu);
const char *sim_gpu_string(int gpu, const char *key);
json_int_t sim_gpu_int(int gpu, const char *key, json_int_t otherwise);
int sim_gpu_by_pci(const char *address);
bool sim_mig_capable(int gpu);
bool sim_is_ampere(int gpu);
int sim_driver_branch(void);
bool sim_has_nvswitch(void);
bool sim_fabric_ready(void);
json_t *sim_health(int gpu);

/* faults.c */
bool sim_fault(const char *call, int gpu, nvmlReturn_t *result);
void sim_latency(void);
nvmlReturn_t sim_error_by_name(const char *name);
const char *sim_error_name(nvmlReturn_t result);

/* holders.c */
bool sim_instance_held(int gpu, int gi, int ci);
bool sim_gpu_held(int gpu);
json_t *sim_processes(int gpu); /* new reference: listed holders that live */

/* mig_state.c */
bool sim_mig_enabled(int gpu);
json_t *sim_instances(int gpu); /* array of GPU instances */
json_t *sim_instance(int gpu, unsigned int id);
json_t *sim_compute_instance(json_t *instance, unsigned int id);
void sim_drop_instances(int gpu);
void sim_set_mode_now(int gpu, unsigned int mode);
json_t *sim_gi_profile_by_index(int gpu, unsigned int index);
json_t *sim_gi_profile_by_id(int gpu, unsigned int id);
json_t *sim_ci_profiles(int gpu, json_t *gi_profile); /* new reference: array */
json_int_t sim_profile_memory(int gpu, json_t *gi_profile);

/* capabilities.c: the files below /proc/driver/nvidia that the kernel module keeps */
void sim_write_capabilities(int gpu);

/* settings.c */
void sim_forget_settings(int gpu);

/* handles.c */
nvmlDevice_t sim_device_handle(int gpu, int gi, int ci, json_int_t created);
nvmlGpuInstance_t sim_gi_handle(int gpu, unsigned int id, json_int_t created);
nvmlComputeInstance_t sim_ci_handle(int gpu, unsigned int gi, unsigned int id, json_int_t created);
bool sim_valid_device(nvmlDevice_t device);
bool sim_valid_gi(nvmlGpuInstance_t handle);
bool sim_valid_ci(nvmlComputeInstance_t handle);
void sim_forget_handles(void);

static inline json_int_t sim_int(json_t *object, const char *key, json_int_t otherwise)
{
    json_t *value = json_object_get(object, key);
    if (json_is_real(value))
        return (json_int_t)json_real_value(value);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}
static inline const char *sim_string(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}
nvmlReturn_t sim_copy(char *target, unsigned int length, const char *text);

#endif
