/* Entry and exit of every function: initialised, driver loaded and of this version, lock, injected fault, log. */
#include "sim.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOG "/var/lib/gpu-sandbox/mutations.jsonl"

static int initialised;
static bool faulted; /* the call's result was injected: nothing is committed */

nvmlReturn_t sim_driver_ready(void)
{
    const char *loaded = sim_loaded_version();
    if (!loaded)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    return strcmp(loaded, DRIVER_VERSION) == 0 ? NVML_SUCCESS : NVML_ERROR_LIB_RM_VERSION_MISMATCH;
}

static void write_log(struct sim_call *call, nvmlReturn_t result)
{
    FILE *file = fopen(sim_path(LOG), "a");
    if (!file)
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    json_t *line = json_pack("{s:f, s:i, s:s, s:s, s:s}", "time", (double)now.tv_sec + (double)now.tv_nsec / 1e9, "pid",
                             (int)getpid(), "call", call->name, "gpu", call->gpu < 0 ? "" : sim_gpu_string(call->gpu, "pci_address"),
                             "result", sim_error_name(result));
    json_object_set_new(line, "arguments", call->arguments ? json_incref(call->arguments) : json_object());
    json_dumpf(line, file, JSON_COMPACT | JSON_SORT_KEYS);
    fputc('\n', file);
    fclose(file);
    json_decref(line);
}

static nvmlReturn_t begin(struct sim_call *call, const char *name, enum sim_access access, int gpu)
{
    nvmlReturn_t result;
    *call = (struct sim_call){.name = name, .access = access, .gpu = gpu};
    if (!initialised)
        return NVML_ERROR_UNINITIALIZED;
    sim_latency();
    faulted = sim_fault(name, gpu, &result);
    if (!sim_lock(access))
        return NVML_ERROR_UNKNOWN;
    if (faulted)
        return sim_end(call, result);
    if ((result = sim_driver_ready()) != NVML_SUCCESS)
        return sim_end(call, result);
    if (gpu >= 0) {
        json_t *health = sim_health(gpu);
        bool lost = json_is_true(json_object_get(health, "lost"));
        json_decref(health);
        if (lost)
            return sim_end(call, NVML_ERROR_GPU_IS_LOST);
    }
    if (access == SIM_MUTATE && sim_uid() != 0)
        return sim_end(call, NVML_ERROR_NO_PERMISSION);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_begin_gpu(struct sim_call *call, const char *name, enum sim_access access, int gpu)
{
    return begin(call, name, access, gpu);
}

nvmlReturn_t sim_begin(struct sim_call *call, const char *name, enum sim_access access, nvmlDevice_t device)
{
    nvmlReturn_t result;
    if (initialised && !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    if ((result = begin(call, name, access, device ? device->gpu : -1)) != NVML_SUCCESS)
        return result;
    return sim_valid_device(device) ? NVML_SUCCESS : sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
}

nvmlReturn_t sim_end(struct sim_call *call, nvmlReturn_t result)
{
    bool mutating = call->access == SIM_MUTATE;
    sim_unlock(mutating && !faulted);
    if (mutating && sim_commit_failed() && result == NVML_SUCCESS)
        result = NVML_ERROR_UNKNOWN;
    if (mutating)
        write_log(call, result);
    json_decref(call->arguments);
    call->arguments = NULL;
    faulted = false;
    return result;
}

void sim_argument(struct sim_call *call, const char *name, json_int_t value)
{
    if (!call->arguments)
        call->arguments = json_object();
    json_object_set_new(call->arguments, name, json_integer(value));
}

static nvmlReturn_t initialise(bool need_gpus)
{
    nvmlReturn_t result = NVML_SUCCESS;
    if (!sim_store_open())
        return NVML_ERROR_DRIVER_NOT_LOADED; /* not a simulated machine: never pretend to be a driver there */
    sim_latency();
    if (sim_fault("nvmlInit_v2", -1, &result))
        return result;
    if (!sim_lock(SIM_READ))
        return NVML_ERROR_UNKNOWN;
    result = sim_driver_ready();
    sim_unlock(false);
    if (result == NVML_SUCCESS && need_gpus && sim_gpu_count() == 0)
        result = NVML_ERROR_NOT_FOUND;
    if (result == NVML_SUCCESS && initialised++ == 0)
        sim_forget_handles();
    return result;
}

EXPORT nvmlReturn_t nvmlInit_v2(void) { return initialise(false); }
EXPORT nvmlReturn_t nvmlInit(void) { return initialise(true); }
EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { return initialise(!(flags & NVML_INIT_FLAG_NO_GPUS)); }

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    if (initialised == 0)
        return NVML_ERROR_UNINITIALIZED;
    initialised--;
    return NVML_SUCCESS;
}
