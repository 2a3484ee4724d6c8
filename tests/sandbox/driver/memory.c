/* Memory, processes, utilization and sensors. */
#include "sim.h"

#include <string.h>

#define MIB (1024ULL * 1024ULL)
#define ENTER(device)                                                       \
    struct sim_call call;                                                   \
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);     \
    if (result != NVML_SUCCESS)                                             \
        return result
#define LEAVE(value) return sim_end(&call, value)

/* What the driver and the firmware keep for themselves on a full GPU. */
#define RESERVED_MIB 600ULL

static void amounts(nvmlDevice_t device, unsigned long long *total, unsigned long long *reserved, unsigned long long *used)
{
    int gpu = device->gpu;
    json_t *list = sim_processes(gpu), *holder;
    size_t index;
    *total = (unsigned long long)sim_int(sim_profile(gpu), "total_memory_mib", 32768) * MIB;
    *reserved = RESERVED_MIB * MIB;
    *used = 0;
    if (device->gi >= 0) {
        json_t *instance = sim_instance(gpu, (unsigned int)device->gi);
        json_t *profile = sim_gi_profile_by_id(gpu, (unsigned int)sim_int(instance, "profile_id", 0));
        *total = (unsigned long long)sim_profile_memory(gpu, profile) * MIB;
        *reserved = 0;
    }
    json_array_foreach(list, index, holder)
        if (device->gi < 0 || sim_int(holder, "gpu_instance_id", -1) == device->gi)
            *used += (unsigned long long)sim_int(holder, "used_memory_mib", 0) * MIB;
    json_decref(list);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    unsigned long long total, reserved, used;
    ENTER(device);
    if (!memory)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    amounts(device, &total, &reserved, &used);
    memory->total = total;
    memory->used = used + reserved; /* version 1 counts what is reserved as used */
    memory->free = total - memory->used;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    ENTER(device);
    if (!memory)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (memory->version != nvmlMemory_v2)
        LEAVE(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    unsigned long long total, reserved, used;
    amounts(device, &total, &reserved, &used);
    memory->total = total;
    memory->reserved = reserved;
    memory->used = used;
    memory->free = total - reserved - used;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    ENTER(device);
    if (!memory)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    json_int_t bar1 = sim_int(sim_profile(device->gpu), "bar1_mib", 0);
    memory->bar1Total = (unsigned long long)(bar1 > 0 ? bar1 : 32768) * MIB;
    memory->bar1Used = MIB;
    memory->bar1Free = memory->bar1Total - memory->bar1Used;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    ENTER(device);
    if (!utilization)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (device->gi >= 0 || sim_mig_enabled(device->gpu))
        LEAVE(NVML_ERROR_NOT_SUPPORTED); /* not measurable in MIG mode */
    utilization->gpu = sim_gpu_held(device->gpu) ? 40 : 0;
    utilization->memory = utilization->gpu / 2;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius)
{
    ENTER(device);
    if (!celsius || sensor != NVML_TEMPERATURE_GPU)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    json_t *health = sim_health(device->gpu);
    *celsius = (unsigned int)sim_int(health, "temperature_c", 34);
    json_decref(health);
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t type, unsigned int *celsius)
{
    ENTER(device);
    if (!celsius)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *celsius = type == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN ? 92 : type == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN ? 89 : 85;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state)
{
    ENTER(device);
    if (!state)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *state = NVML_PSTATE_0;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed)
{
    (void)speed;
    ENTER(device);
    LEAVE(NVML_ERROR_NOT_SUPPORTED); /* passively cooled boards */
}

/* --- processes: three sizes of structure --- */
enum process_form { FORM_V1, FORM_V2 };

static nvmlReturn_t processes(const char *name, nvmlDevice_t device, unsigned int *count, void *out, enum process_form form)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, name, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!count || (*count > 0 && !out))
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    json_t *list = sim_processes(device->gpu), *holder;
    unsigned int room = *count, total = 0;
    size_t index;
    json_array_foreach(list, index, holder)
    {
        json_int_t gi = sim_int(holder, "gpu_instance_id", -1), ci = sim_int(holder, "compute_instance_id", gi >= 0 ? 0 : -1);
        if (device->gi >= 0 && (gi != device->gi || ci != device->ci))
            continue;
        nvmlProcessInfo_v2_t info = {(unsigned int)sim_int(holder, "pid", 0), (unsigned long long)sim_int(holder, "used_memory_mib", 0) * MIB,
                                     (unsigned int)gi, (unsigned int)ci};
        if (total < room && form == FORM_V2)
            ((nvmlProcessInfo_v2_t *)out)[total] = info;
        if (total < room && form == FORM_V1)
            ((nvmlProcessInfo_v1_t *)out)[total] = (nvmlProcessInfo_v1_t){info.pid, info.usedGpuMemory};
        total++;
    }
    json_decref(list);
    *count = total;
    LEAVE(total > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *out)
{
    return processes(__func__, device, count, out, FORM_V1);
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *out)
{
    return processes(__func__, device, count, out, FORM_V2);
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *out)
{
    return processes(__func__, device, count, out, FORM_V2);
}

#define NO_PROCESSES(function, type)                                                           \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, type *out)          \
    {                                                                                          \
        (void)out;                                                                             \
        ENTER(device);                                                                         \
        if (!count)                                                                            \
            LEAVE(NVML_ERROR_INVALID_ARGUMENT);                                                \
        *count = 0;                                                                            \
        LEAVE(NVML_SUCCESS);                                                                   \
    }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
