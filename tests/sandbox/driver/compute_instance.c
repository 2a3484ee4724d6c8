/* Compute instances inside a GPU instance. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *gi_profile_of(int gpu, json_t *instance) { return sim_gi_profile_by_id(gpu, (unsigned int)sim_int(instance, "profile_id", 0)); }

/* Borrowed from `list`, which the caller releases. */
static json_t *pick(json_t *list, unsigned int index)
{
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row)
        if (sim_int(row, "ci_profile_index", -1) == (json_int_t)index)
            return row;
    return NULL;
}

static void fill(json_t *gi_profile, json_t *row, nvmlComputeInstanceProfileInfo_v2_t *info)
{
    info->id = (unsigned int)sim_int(row, "ci_profile_index", 0);
    info->sliceCount = (unsigned int)sim_int(row, "slices", 1);
    info->instanceCount = (unsigned int)sim_int(row, "max_instances", 1);
    info->multiprocessorCount = (unsigned int)sim_int(row, "multiprocessors", 0);
    info->sharedCopyEngineCount = (unsigned int)sim_int(gi_profile, "copy_engines", 0);
    info->sharedDecoderCount = (unsigned int)sim_int(gi_profile, "decoders", 0);
    info->sharedEncoderCount = (unsigned int)sim_int(gi_profile, "encoders", 0);
    info->sharedJpegCount = (unsigned int)sim_int(gi_profile, "jpeg", 0);
    info->sharedOfaCount = (unsigned int)sim_int(gi_profile, "ofa", 0);
    snprintf(info->name, sizeof info->name, "MIG %s", sim_string(row, "ci_name"));
}

static nvmlReturn_t enter(struct sim_call *call, const char *name, enum sim_access access, nvmlGpuInstance_t handle)
{
    nvmlReturn_t result = sim_begin_gpu(call, name, access, handle ? handle->gpu : -1);
    if (result != NVML_SUCCESS)
        return result;
    return handle && sim_valid_gi(handle) ? NVML_SUCCESS : sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
}

static nvmlReturn_t profile_info(nvmlGpuInstance_t handle, unsigned int index, nvmlComputeInstanceProfileInfo_v2_t *info)
{
    json_t *gi_profile = gi_profile_of(handle->gpu, sim_instance(handle->gpu, handle->id));
    json_t *list = sim_ci_profiles(handle->gpu, gi_profile), *row = pick(list, index);
    if (row)
        fill(gi_profile, row, info);
    json_decref(list);
    return row ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned int index, unsigned int engine, nvmlComputeInstanceProfileInfo_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = enter(&call, __func__, SIM_READ, handle);
    if (result != NVML_SUCCESS)
        return result;
    if (!out || index >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engine >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    nvmlComputeInstanceProfileInfo_v2_t info = {0};
    if ((result = profile_info(handle, index, &info)) != NVML_SUCCESS)
        return sim_end(&call, result);
    *out = (nvmlComputeInstanceProfileInfo_t){
        info.id,
        info.sliceCount,
        info.instanceCount,
        info.multiprocessorCount,
        info.sharedCopyEngineCount,
        info.sharedDecoderCount,
        info.sharedEncoderCount,
        info.sharedJpegCount,
        info.sharedOfaCount,
    };
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned int index, unsigned int engine, nvmlComputeInstanceProfileInfo_v2_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = enter(&call, __func__, SIM_READ, handle);
    if (result != NVML_SUCCESS)
        return result;
    if (!out || index >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engine >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if (out->version != nvmlComputeInstanceProfileInfo_v2 && out->version != nvmlComputeInstanceProfileInfo_v3)
        return sim_end(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    nvmlComputeInstanceProfileInfo_v2_t info = {.version = out->version};
    if ((result = profile_info(handle, index, &info)) != NVML_SUCCESS)
        return sim_end(&call, result);
    if (out->version == nvmlComputeInstanceProfileInfo_v3)
        ((nvmlComputeInstanceProfileInfo_v3_t *)out)->capabilities = 0; /* version 3 only adds this field at the end */
    *out = info;
    return sim_end(&call, NVML_SUCCESS);
}

static bool free_at(json_t *instance, json_int_t start, json_int_t size)
{
    size_t index;
    json_t *compute;
    json_array_foreach(json_object_get(instance, "compute_instances"), index, compute)
    {
        json_int_t s = sim_int(compute, "start", 0), n = sim_int(compute, "size", 0);
        if (start < s + n && s < start + size)
            return false;
    }
    return true;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle, unsigned int index, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t result = enter(&call, __func__, SIM_READ, handle);
    if (result != NVML_SUCCESS)
        return result;
    json_t *instance = sim_instance(handle->gpu, handle->id), *list = sim_ci_profiles(handle->gpu, gi_profile_of(handle->gpu, instance));
    json_t *row = pick(list, index);
    json_int_t size = sim_int(row, "slices", 1), most = sim_int(row, "max_instances", 0);
    if (!row || !count || sim_uid() != 0) {
        json_decref(list);
        return sim_end(&call, sim_uid() != 0 ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_INVALID_ARGUMENT);
    }
    *count = 0;
    for (json_int_t i = 0; i < most; i++)
        *count += free_at(instance, i * size, size);
    json_decref(list);
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t handle, unsigned int index, nvmlComputeInstancePlacement_t *out, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t result = enter(&call, __func__, SIM_READ, handle);
    if (result != NVML_SUCCESS)
        return result;
    json_t *list = sim_ci_profiles(handle->gpu, gi_profile_of(handle->gpu, sim_instance(handle->gpu, handle->id)));
    json_t *row = pick(list, index);
    json_int_t size = sim_int(row, "slices", 1), most = sim_int(row, "max_instances", 0);
    bool known = row != NULL;
    json_decref(list);
    if (!known || !count)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if (out && (json_int_t)*count < most) {
        *count = (unsigned int)most;
        return sim_end(&call, NVML_ERROR_INSUFFICIENT_SIZE);
    }
    for (json_int_t i = 0; out && i < most; i++)
        out[i] = (nvmlComputeInstancePlacement_t){(unsigned int)(i * size), (unsigned int)size};
    *count = (unsigned int)most;
    return sim_end(&call, NVML_SUCCESS);
}

static void make_uuid(char *text, size_t length)
{
    unsigned char bytes[16] = {0};
    FILE *random = fopen("/dev/urandom", "rb");
    if (random) {
        if (fread(bytes, 1, sizeof bytes, random) != sizeof bytes)
            memset(bytes, 0, sizeof bytes);
        fclose(random);
    }
    int at = snprintf(text, length, "MIG-");
    for (int i = 0; i < 16; i++)
        at += snprintf(text + at, length - (size_t)at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

/* MIG devices are numbered in slots that stay: a destroyed one leaves a hole. */
static int free_slot(int gpu)
{
    for (int slot = 0;; slot++) {
        bool used = false;
        size_t g, c;
        json_t *instance, *compute;
        json_array_foreach(sim_instances(gpu), g, instance)
            json_array_foreach(json_object_get(instance, "compute_instances"), c, compute)
                used |= sim_int(compute, "slot", -1) == slot;
        if (!used)
            return slot;
    }
}

static nvmlReturn_t create(struct sim_call *call, nvmlGpuInstance_t handle, unsigned int index, const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *out)
{
    char uuid[64];
    int gpu = handle->gpu;
    sim_argument(call, "gpu_instance_id", handle->id);
    sim_argument(call, "profile_id", index);
    json_t *instance = sim_instance(gpu, handle->id), *list = sim_ci_profiles(gpu, gi_profile_of(gpu, instance)), *row = pick(list, index);
    json_int_t size = sim_int(row, "slices", 1), most = sim_int(row, "max_instances", 0), start = -1;
    bool known = row != NULL;
    json_decref(list);
    if (!out || !known)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (json_int_t i = 0; i < most && start < 0; i++)
        if (free_at(instance, i * size, size) && (!placement || (placement->start == i * size && placement->size == size)))
            start = i * size;
    if (start < 0)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    unsigned int id = 0;
    while (sim_compute_instance(instance, id))
        id++;
    make_uuid(uuid, sizeof uuid);
    json_int_t created = sim_next_serial();
    json_array_append_new(json_object_get(instance, "compute_instances"),
                          json_pack("{s:i, s:i, s:I, s:I, s:I, s:i, s:s}", "id", (int)id, "profile_id", (int)index, "start", start, "size", size,
                                    "created", created, "slot", free_slot(gpu), "uuid", uuid));
    sim_write_capabilities(gpu);
    *out = sim_ci_handle(gpu, handle->id, id, created);
    return *out ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned int index, nvmlComputeInstance_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = enter(&call, __func__, SIM_MUTATE, handle);
    return result == NVML_SUCCESS ? sim_end(&call, create(&call, handle, index, NULL, out)) : result;
}

EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t handle, unsigned int index, const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = enter(&call, __func__, SIM_MUTATE, handle);
    if (result != NVML_SUCCESS)
        return result;
    return sim_end(&call, placement ? create(&call, handle, index, placement, out) : NVML_ERROR_INVALID_ARGUMENT);
}

EXPORT nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, __func__, SIM_MUTATE, handle ? handle->gpu : -1);
    if (result != NVML_SUCCESS)
        return result;
    if (!handle || !sim_valid_ci(handle))
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    sim_argument(&call, "gpu_instance_id", handle->gi);
    sim_argument(&call, "compute_instance_id", handle->id);
    if (sim_instance_held(handle->gpu, (int)handle->gi, (int)handle->id))
        return sim_end(&call, NVML_ERROR_IN_USE);
    json_t *list = json_object_get(sim_instance(handle->gpu, handle->gi), "compute_instances"), *compute;
    size_t index;
    json_array_foreach(list, index, compute)
        if (sim_int(compute, "id", -1) == (json_int_t)handle->id) {
            json_array_remove(list, index);
            break;
        }
    sim_write_capabilities(handle->gpu);
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int profile_id, nvmlComputeInstance_t *list, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t result = enter(&call, __func__, SIM_READ, handle);
    if (result != NVML_SUCCESS)
        return result;
    if (!list || !count || profile_id >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if (sim_uid() != 0)
        return sim_end(&call, NVML_ERROR_NO_PERMISSION);
    size_t index;
    json_t *compute;
    *count = 0;
    json_array_foreach(json_object_get(sim_instance(handle->gpu, handle->id), "compute_instances"), index, compute)
        if (sim_int(compute, "profile_id", -1) == (json_int_t)profile_id)
            list[(*count)++] = sim_ci_handle(handle->gpu, handle->id, (unsigned int)sim_int(compute, "id", 0), sim_int(compute, "created", 0));
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id, nvmlComputeInstance_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = enter(&call, __func__, SIM_READ, handle);
    if (result != NVML_SUCCESS)
        return result;
    json_t *compute = sim_compute_instance(sim_instance(handle->gpu, handle->id), id);
    if (!out || !compute)
        return sim_end(&call, out ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT);
    if (sim_uid() != 0)
        return sim_end(&call, NVML_ERROR_NO_PERMISSION);
    *out = sim_ci_handle(handle->gpu, handle->id, id, sim_int(compute, "created", 0));
    return sim_end(&call, NVML_SUCCESS);
}

static nvmlReturn_t info_of(struct sim_call *call, nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    if (!info || !handle || !sim_valid_ci(handle))
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    json_t *instance = sim_instance(handle->gpu, handle->gi), *compute = sim_compute_instance(instance, handle->id);
    info->device = sim_device_handle(handle->gpu, -1, -1, 0);
    info->gpuInstance = sim_gi_handle(handle->gpu, handle->gi, sim_int(instance, "created", 0));
    info->id = handle->id;
    info->profileId = (unsigned int)sim_int(compute, "profile_id", 0);
    info->placement.start = (unsigned int)sim_int(compute, "start", 0);
    info->placement.size = (unsigned int)sim_int(compute, "size", 0);
    return sim_end(call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, __func__, SIM_READ, handle ? handle->gpu : -1);
    return result == NVML_SUCCESS ? info_of(&call, handle, info) : result;
}

EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, __func__, SIM_READ, handle ? handle->gpu : -1);
    return result == NVML_SUCCESS ? info_of(&call, handle, info) : result;
}
