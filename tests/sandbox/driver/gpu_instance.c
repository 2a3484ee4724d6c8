/* GPU instances: profiles, placements, capacity, creation and destruction. */
#include "sim.h"

#include <string.h>

/* R535 and older list no profile while MIG mode is off. */
static nvmlReturn_t listable(int gpu)
{
    if (!sim_mig_capable(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    return sim_driver_branch() <= 535 && !sim_mig_enabled(gpu) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static void fill(int gpu, json_t *profile, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    info->id = (unsigned int)sim_int(profile, "profile_id", 0);
    info->isP2pSupported = 0;
    info->sliceCount = (unsigned int)sim_int(profile, "slice_count", 0);
    info->instanceCount = (unsigned int)sim_int(profile, "max_instances", 0);
    info->multiprocessorCount = (unsigned int)sim_int(profile, "multiprocessors", 0);
    info->copyEngineCount = (unsigned int)sim_int(profile, "copy_engines", 0);
    info->decoderCount = (unsigned int)sim_int(profile, "decoders", 0);
    info->encoderCount = (unsigned int)sim_int(profile, "encoders", 0);
    info->jpegCount = (unsigned int)sim_int(profile, "jpeg", 0);
    info->ofaCount = (unsigned int)sim_int(profile, "ofa", 0);
    info->memorySizeMB = (unsigned long long)sim_profile_memory(gpu, profile);
    strncpy(info->name, "MIG ", sizeof info->name);
    strncat(info->name, sim_string(profile, "name"), sizeof info->name - 5);
}

/* Versions 2 and 3 of the structure differ from 1 by a version in front and a name behind; 3 has no P2P field and capabilities last. */
static nvmlReturn_t answer(int gpu, json_t *profile, unsigned int *versioned)
{
    nvmlGpuInstanceProfileInfo_v2_t info = {0};
    fill(gpu, profile, &info);
    if (*versioned == nvmlGpuInstanceProfileInfo_v2) {
        info.version = *versioned;
        memcpy(versioned, &info, sizeof info);
        return NVML_SUCCESS;
    }
    if (*versioned != nvmlGpuInstanceProfileInfo_v3)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlGpuInstanceProfileInfo_v3_t *out = (nvmlGpuInstanceProfileInfo_v3_t *)versioned;
    *out = (nvmlGpuInstanceProfileInfo_v3_t){
        .version = *versioned,
        .id = info.id,
        .sliceCount = info.sliceCount,
        .instanceCount = info.instanceCount,
        .multiprocessorCount = info.multiprocessorCount,
        .copyEngineCount = info.copyEngineCount,
        .decoderCount = info.decoderCount,
        .encoderCount = info.encoderCount,
        .jpegCount = info.jpegCount,
        .ofaCount = info.ofaCount,
        .memorySizeMB = info.memorySizeMB,
    };
    memcpy(out->name, info.name, sizeof out->name);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int index, nvmlGpuInstanceProfileInfo_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!out || device->gi >= 0 || index >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if ((result = listable(device->gpu)) != NVML_SUCCESS)
        return sim_end(&call, result);
    json_t *profile = sim_gi_profile_by_index(device->gpu, index);
    if (!profile)
        return sim_end(&call, NVML_ERROR_NOT_SUPPORTED);
    nvmlGpuInstanceProfileInfo_v2_t info = {0};
    fill(device->gpu, profile, &info);
    *out = (nvmlGpuInstanceProfileInfo_t){
        info.id,          info.isP2pSupported, info.sliceCount, info.instanceCount, info.multiprocessorCount, info.copyEngineCount,
        info.decoderCount, info.encoderCount,   info.jpegCount,  info.ofaCount,      info.memorySizeMB,
    };
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int index, nvmlGpuInstanceProfileInfo_v2_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!out || device->gi >= 0 || index >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if ((result = listable(device->gpu)) != NVML_SUCCESS)
        return sim_end(&call, result);
    json_t *profile = sim_gi_profile_by_index(device->gpu, index);
    return sim_end(&call, profile ? answer(device->gpu, profile, &out->version) : NVML_ERROR_NOT_SUPPORTED);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id, nvmlGpuInstanceProfileInfo_v2_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!out || device->gi >= 0)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if ((result = listable(device->gpu)) != NVML_SUCCESS)
        return sim_end(&call, result);
    json_t *profile = sim_gi_profile_by_id(device->gpu, id);
    return sim_end(&call, profile ? answer(device->gpu, profile, &out->version) : NVML_ERROR_NOT_SUPPORTED);
}

static json_t *starts(json_t *profile) { return json_object_get(json_object_get(profile, "placements"), "starts"); }

static json_int_t slot_size(json_t *profile) { return sim_int(json_object_get(profile, "placements"), "size", 1); }

static nvmlReturn_t placements(struct sim_call *call, nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *list, unsigned int *count)
{
    if (!count || device->gi >= 0)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    if (!sim_mig_capable(device->gpu))
        return sim_end(call, NVML_ERROR_NOT_SUPPORTED);
    if (sim_uid() != 0)
        return sim_end(call, NVML_ERROR_NO_PERMISSION);
    json_t *profile = sim_gi_profile_by_id(device->gpu, id), *start;
    if (!profile)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    size_t index, total = json_array_size(starts(profile));
    if (list && *count < total) {
        *count = (unsigned int)total;
        return sim_end(call, NVML_ERROR_INSUFFICIENT_SIZE);
    }
    if (list)
        json_array_foreach(starts(profile), index, start)
            list[index] = (nvmlGpuInstancePlacement_t){(unsigned int)json_integer_value(start), (unsigned int)slot_size(profile)};
    *count = (unsigned int)total;
    return sim_end(call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *list, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    return result == NVML_SUCCESS ? placements(&call, device, id, list, count) : result;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *list, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    return result == NVML_SUCCESS ? placements(&call, device, id, list, count) : result;
}

static bool media(json_t *profile) { return strstr(sim_string(profile, "name"), "+me") && !strstr(sim_string(profile, "name"), "-me"); }

/* Free memory slices at this start, compute slices, the profile's own maximum, one instance with the media engines. */
static bool fits(int gpu, json_t *profile, json_int_t start, json_t *layout)
{
    json_int_t size = slot_size(profile), compute = sim_int(profile, "slice_count", 0), same = 0;
    size_t index;
    json_t *instance;
    json_array_foreach(layout, index, instance)
    {
        json_t *other = sim_gi_profile_by_id(gpu, (unsigned int)sim_int(instance, "profile_id", 0));
        json_int_t s = sim_int(instance, "start", 0), n = sim_int(instance, "size", 0);
        if (start < s + n && s < start + size)
            return false;
        compute += sim_int(other, "slice_count", 0);
        same += other == profile;
        if (media(profile) && media(other))
            return false;
    }
    return compute <= sim_int(sim_profile(gpu), "compute_slices", 7) && same < sim_int(profile, "max_instances", 1);
}

/* The driver takes the upper half first for a half-size instance that could be at both, which leaves 0 for the 4-slice profile. */
static json_int_t default_start(int gpu, json_t *profile, json_t *layout)
{
    json_t *list = starts(profile);
    size_t total = json_array_size(list);
    bool upper = total == 2 && slot_size(profile) * 2 == sim_int(sim_profile(gpu), "memory_slices", 8);
    for (size_t i = 0; i < total; i++) {
        json_int_t start = json_integer_value(json_array_get(list, upper ? total - 1 - i : i));
        if (fits(gpu, profile, start, layout))
            return start;
    }
    return -1;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!count || device->gi >= 0)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    int gpu = device->gpu;
    if (!sim_mig_enabled(gpu))
        return sim_end(&call, NVML_ERROR_NOT_SUPPORTED);
    if (sim_uid() != 0)
        return sim_end(&call, NVML_ERROR_NO_PERMISSION);
    json_t *profile = sim_gi_profile_by_id(gpu, id);
    if (!profile)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    json_t *layout = json_copy(sim_instances(gpu));
    json_int_t start;
    *count = 0;
    while ((start = default_start(gpu, profile, layout)) >= 0) {
        json_array_append_new(layout, json_pack("{s:i, s:I, s:I}", "profile_id", (int)id, "start", start, "size", slot_size(profile)));
        ++*count;
    }
    json_decref(layout);
    return sim_end(&call, NVML_SUCCESS);
}

/* Ids come from a range for each size: on 8 slices 8:0, 4:1-2, 2:3-6, 1:7-14. */
static int free_id(int gpu, json_int_t size)
{
    json_int_t slots = sim_int(sim_profile(gpu), "memory_slices", 8) / size, base = slots - 1;
    for (json_int_t id = base; id < base + slots; id++)
        if (!sim_instance(gpu, (unsigned int)id))
            return (int)id;
    return -1;
}

static nvmlReturn_t create(struct sim_call *call, nvmlDevice_t device, unsigned int profile_id, const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *out)
{
    int gpu = device->gpu;
    sim_argument(call, "profile_id", profile_id);
    if (placement)
        sim_argument(call, "start", placement->start);
    if (!out || device->gi >= 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!sim_mig_enabled(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    json_t *profile = sim_gi_profile_by_id(gpu, profile_id), *value;
    if (!profile)
        return NVML_ERROR_INVALID_ARGUMENT;
    json_int_t start, size = slot_size(profile);
    if (placement) {
        size_t index;
        start = -1;
        json_array_foreach(starts(profile), index, value)
            if (json_integer_value(value) == (json_int_t)placement->start && placement->size == (unsigned int)size)
                start = placement->start;
        if (start < 0)
            return NVML_ERROR_INVALID_ARGUMENT;
        if (!fits(gpu, profile, start, sim_instances(gpu)))
            return NVML_ERROR_INSUFFICIENT_RESOURCES;
    } else if ((start = default_start(gpu, profile, sim_instances(gpu))) < 0) {
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    }
    int id = free_id(gpu, size);
    if (id < 0)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    json_int_t created = sim_next_serial();
    json_array_append_new(sim_instances(gpu), json_pack("{s:i, s:i, s:I, s:I, s:I, s:[]}", "id", id, "profile_id", (int)profile_id, "start",
                                                        start, "size", size, "created", created, "compute_instances"));
    sim_write_capabilities(gpu);
    *out = sim_gi_handle(gpu, (unsigned int)id, created);
    return *out ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profile_id, nvmlGpuInstance_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_MUTATE, device);
    return result == NVML_SUCCESS ? sim_end(&call, create(&call, device, profile_id, NULL, out)) : result;
}

EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int profile_id, const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_MUTATE, device);
    if (result != NVML_SUCCESS)
        return result;
    return sim_end(&call, placement ? create(&call, device, profile_id, placement, out) : NVML_ERROR_INVALID_ARGUMENT);
}

EXPORT nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, __func__, SIM_MUTATE, handle ? handle->gpu : -1);
    if (result != NVML_SUCCESS)
        return result;
    if (!handle || !sim_valid_gi(handle))
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    sim_argument(&call, "gpu_instance_id", handle->id);
    json_t *list = sim_instances(handle->gpu), *instance;
    size_t index;
    json_array_foreach(list, index, instance)
    {
        if (sim_int(instance, "id", -1) != (json_int_t)handle->id)
            continue;
        if (json_array_size(json_object_get(instance, "compute_instances")) > 0 || sim_instance_held(handle->gpu, (int)handle->id, -1))
            return sim_end(&call, NVML_ERROR_IN_USE);
        json_array_remove(list, index);
        sim_write_capabilities(handle->gpu);
        return sim_end(&call, NVML_SUCCESS);
    }
    return sim_end(&call, NVML_ERROR_NOT_FOUND);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id, nvmlGpuInstance_t *list, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!list || !count || device->gi >= 0)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if (!sim_mig_enabled(device->gpu))
        return sim_end(&call, NVML_ERROR_NOT_SUPPORTED);
    if (sim_uid() != 0)
        return sim_end(&call, NVML_ERROR_NO_PERMISSION);
    if (!sim_gi_profile_by_id(device->gpu, profile_id))
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    size_t index;
    json_t *instance;
    *count = 0;
    json_array_foreach(sim_instances(device->gpu), index, instance)
        if (sim_int(instance, "profile_id", -1) == (json_int_t)profile_id)
            list[(*count)++] = sim_gi_handle(device->gpu, (unsigned int)sim_int(instance, "id", 0), sim_int(instance, "created", 0));
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!out || device->gi >= 0)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if (!sim_mig_enabled(device->gpu))
        return sim_end(&call, NVML_ERROR_NOT_SUPPORTED);
    if (sim_uid() != 0)
        return sim_end(&call, NVML_ERROR_NO_PERMISSION);
    json_t *instance = sim_instance(device->gpu, id);
    if (!instance)
        return sim_end(&call, NVML_ERROR_NOT_FOUND);
    *out = sim_gi_handle(device->gpu, id, sim_int(instance, "created", 0));
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, __func__, SIM_READ, handle ? handle->gpu : -1);
    if (result != NVML_SUCCESS)
        return result;
    if (!info || !handle || !sim_valid_gi(handle))
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    json_t *instance = sim_instance(handle->gpu, handle->id);
    info->device = sim_device_handle(handle->gpu, -1, -1, 0);
    info->id = handle->id;
    info->profileId = (unsigned int)sim_int(instance, "profile_id", 0);
    info->placement.start = (unsigned int)sim_int(instance, "start", 0);
    info->placement.size = (unsigned int)sim_int(instance, "size", 0);
    return sim_end(&call, NVML_SUCCESS);
}
