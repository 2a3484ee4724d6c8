/* MIG devices: the handle of a compute instance that CUDA and monitors use. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

static json_t *by_slot(int gpu, unsigned int slot, json_t **parent)
{
    size_t g, c;
    json_t *instance, *compute;
    json_array_foreach(sim_instances(gpu), g, instance)
        json_array_foreach(json_object_get(instance, "compute_instances"), c, compute)
            if (sim_int(compute, "slot", -1) == (json_int_t)slot) {
                *parent = instance;
                return compute;
            }
    return NULL;
}

static nvmlDevice_t handle_of(int gpu, json_t *instance, json_t *compute)
{
    return sim_device_handle(gpu, (int)sim_int(instance, "id", 0), (int)sim_int(compute, "id", 0), sim_int(compute, "created", 0));
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!is_mig)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    *is_mig = device->gi >= 0;
    return sim_end(&call, NVML_SUCCESS);
}

static nvmlReturn_t mig_number(struct sim_call *call, nvmlDevice_t device, int number, unsigned int *out)
{
    if (!out || device->gi < 0)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    *out = (unsigned int)number;
    return sim_end(call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    return result == NVML_SUCCESS ? mig_number(&call, device, device->gi, id) : result;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    return result == NVML_SUCCESS ? mig_number(&call, device, device->ci, id) : result;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    *count = sim_mig_enabled(device->gpu) ? (unsigned int)sim_int(sim_profile(device->gpu), "compute_slices", 7) : 0;
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!out || device->gi >= 0)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if (!sim_mig_enabled(device->gpu))
        return sim_end(&call, NVML_ERROR_NOT_SUPPORTED);
    json_t *instance = NULL, *compute = by_slot(device->gpu, index, &instance);
    if (!compute)
        return sim_end(&call, NVML_ERROR_NOT_FOUND);
    *out = handle_of(device->gpu, instance, compute);
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, mig);
    if (result != NVML_SUCCESS)
        return result;
    if (!out || mig->gi < 0)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    *out = sim_device_handle(mig->gpu, -1, -1, 0);
    return sim_end(&call, NVML_SUCCESS);
}

/* Both spellings: MIG-<uuid>, and MIG-GPU-<uuid>/<gi>/<ci> of drivers before R470. */
nvmlDevice_t sim_find_uuid(const char *uuid)
{
    char parent[96];
    int gi, ci;
    bool old = sscanf(uuid, "MIG-%80[^/]/%d/%d", parent, &gi, &ci) == 3;
    for (int gpu = 0; gpu < sim_gpu_count(); gpu++) {
        if (strcmp(sim_gpu_string(gpu, "uuid"), uuid) == 0)
            return sim_device_handle(gpu, -1, -1, 0);
        if (strncmp(uuid, "MIG-", 4) != 0)
            continue;
        size_t g, c;
        json_t *instance, *compute;
        json_array_foreach(sim_instances(gpu), g, instance)
            json_array_foreach(json_object_get(instance, "compute_instances"), c, compute)
            {
                bool same = strcmp(sim_string(compute, "uuid"), uuid) == 0;
                bool legacy = old && strcmp(sim_gpu_string(gpu, "uuid"), parent) == 0 && sim_int(instance, "id", -1) == gi && sim_int(compute, "id", -1) == ci;
                if (same || legacy)
                    return handle_of(gpu, instance, compute);
            }
    }
    return NULL;
}

static nvmlReturn_t attributes(struct sim_call *call, nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
    if (!out)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    if (device->gi < 0)
        return sim_end(call, NVML_ERROR_NOT_SUPPORTED);
    json_t *instance = sim_instance(device->gpu, (unsigned int)device->gi), *compute = sim_compute_instance(instance, (unsigned int)device->ci);
    json_t *profile = sim_gi_profile_by_id(device->gpu, (unsigned int)sim_int(instance, "profile_id", 0));
    json_int_t slices = sim_int(profile, "slice_count", 1);
    *out = (nvmlDeviceAttributes_t){
        .multiprocessorCount = (unsigned int)(sim_int(profile, "multiprocessors", 0) * sim_int(compute, "size", 1) / slices),
        .sharedCopyEngineCount = (unsigned int)sim_int(profile, "copy_engines", 0),
        .sharedDecoderCount = (unsigned int)sim_int(profile, "decoders", 0),
        .sharedEncoderCount = (unsigned int)sim_int(profile, "encoders", 0),
        .sharedJpegCount = (unsigned int)sim_int(profile, "jpeg", 0),
        .sharedOfaCount = (unsigned int)sim_int(profile, "ofa", 0),
        .gpuInstanceSliceCount = (unsigned int)slices,
        .computeInstanceSliceCount = (unsigned int)sim_int(compute, "size", 1),
        .memorySizeMB = (unsigned long long)sim_profile_memory(device->gpu, profile),
    };
    return sim_end(call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    return result == NVML_SUCCESS ? attributes(&call, device, out) : result;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    return result == NVML_SUCCESS ? attributes(&call, device, out) : result;
}
