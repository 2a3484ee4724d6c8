/* Power, clocks, persistence, compute mode and ECC. All but ECC and its pending mode are lost with the driver's load. */
#include "sim.h"

#include <string.h>

#define ENTER(device, access)                                               \
    struct sim_call call;                                                   \
    nvmlReturn_t result = sim_begin(&call, __func__, access, device);       \
    if (result != NVML_SUCCESS)                                             \
        return result;                                                      \
    if (device->gi >= 0)                                                    \
        return sim_end(&call, NVML_ERROR_NOT_SUPPORTED)
#define LEAVE(value) return sim_end(&call, value)

/* The driver lets go of the GPU: what it only kept in memory is as after a load. */
void sim_forget_settings(int gpu)
{
    static const char *const names[] = {"power_limit_mw", "locked_gpu_clocks", "locked_memory_clocks"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        json_object_del(sim_gpu_state(gpu), names[i]);
}

static json_int_t power_mw(int gpu, const char *key, json_int_t otherwise)
{
    return sim_int(json_object_get(sim_profile(gpu), "power"), key, otherwise) * 1000;
}

#define POWER(function, value_of)                                            \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *milliwatts) \
    {                                                                        \
        ENTER(device, SIM_READ);                                             \
        if (!milliwatts)                                                     \
            LEAVE(NVML_ERROR_INVALID_ARGUMENT);                              \
        int gpu = device->gpu;                                               \
        *milliwatts = (unsigned int)(value_of);                              \
        LEAVE(NVML_SUCCESS);                                                 \
    }
POWER(nvmlDeviceGetPowerManagementDefaultLimit, power_mw(gpu, "default_w", 300))
POWER(nvmlDeviceGetPowerManagementLimit, sim_int(sim_gpu_state(gpu), "power_limit_mw", power_mw(gpu, "default_w", 300)))
POWER(nvmlDeviceGetEnforcedPowerLimit, sim_int(sim_gpu_state(gpu), "power_limit_mw", power_mw(gpu, "default_w", 300)))
POWER(nvmlDeviceGetPowerUsage, sim_gpu_held(gpu) ? power_mw(gpu, "default_w", 300) / 2 : 56000)

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    ENTER(device, SIM_READ);
    if (!mode)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *mode = NVML_FEATURE_ENABLED;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *least, unsigned int *most)
{
    ENTER(device, SIM_READ);
    if (!least || !most)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *least = (unsigned int)power_mw(device->gpu, "min_w", 100);
    *most = (unsigned int)power_mw(device->gpu, "max_w", 300);
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int milliwatts)
{
    ENTER(device, SIM_MUTATE);
    sim_argument(&call, "milliwatts", milliwatts);
    if (milliwatts < power_mw(device->gpu, "min_w", 100) || milliwatts > power_mw(device->gpu, "max_w", 300))
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    json_object_set_new(sim_gpu_state(device->gpu), "power_limit_mw", json_integer(milliwatts));
    LEAVE(NVML_SUCCESS);
}

/* --- clocks; NVML has no getter for what is locked --- */
static json_int_t clock_of(int gpu, nvmlClockType_t type, const char *which)
{
    static const char *const names[] = {"graphics", "sm", "memory", "video"};
    json_t *range = json_object_get(json_object_get(sim_profile(gpu), "clocks"), type < 4 ? names[type] : "graphics");
    return sim_int(range, which, type == NVML_CLOCK_MEM ? 1215 : 1410);
}

static nvmlReturn_t clock_value(struct sim_call *call, nvmlDevice_t device, nvmlClockType_t type, const char *which, unsigned int *mhz)
{
    if (!mhz || type >= NVML_CLOCK_COUNT)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    *mhz = (unsigned int)clock_of(device->gpu, type, which);
    json_t *locked = json_object_get(sim_gpu_state(device->gpu), type == NVML_CLOCK_MEM ? "locked_memory_clocks" : "locked_gpu_clocks");
    if (locked && strcmp(which, "idle_mhz") == 0)
        *mhz = (unsigned int)json_integer_value(json_array_get(locked, 0));
    return sim_end(call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    ENTER(device, SIM_READ);
    return clock_value(&call, device, type, "idle_mhz", mhz);
}
EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    ENTER(device, SIM_READ);
    return clock_value(&call, device, type, "max_mhz", mhz);
}
EXPORT nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    ENTER(device, SIM_READ);
    return clock_value(&call, device, type, "max_mhz", mhz);
}

/* Memory clocks are locked since Ampere, graphics clocks since Volta. */
static bool before_ampere(int gpu)
{
    const char *capability = sim_string(sim_profile(gpu), "compute_capability");
    return capability && capability[0] < '8';
}

static nvmlReturn_t fill(unsigned int *count, unsigned int *clocks, unsigned int needed)
{
    unsigned int room = count ? *count : 0;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = needed;
    return !clocks || room < needed ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *clocks)
{
    ENTER(device, SIM_READ);
    if ((result = fill(count, clocks, 1)) == NVML_SUCCESS)
        clocks[0] = (unsigned int)clock_of(device->gpu, NVML_CLOCK_MEM, "max_mhz");
    LEAVE(result);
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory, unsigned int *count, unsigned int *clocks)
{
    ENTER(device, SIM_READ);
    json_int_t most = clock_of(device->gpu, NVML_CLOCK_GRAPHICS, "max_mhz"), least = clock_of(device->gpu, NVML_CLOCK_GRAPHICS, "idle_mhz");
    unsigned int steps = (unsigned int)((most - least) / 15) + 1;
    if (memory != (unsigned int)clock_of(device->gpu, NVML_CLOCK_MEM, "max_mhz"))
        LEAVE(NVML_ERROR_NOT_FOUND);
    if ((result = fill(count, clocks, steps)) == NVML_SUCCESS)
        for (unsigned int i = 0; i < steps; i++)
            clocks[i] = (unsigned int)most - 15 * i;
    LEAVE(result);
}

static nvmlReturn_t lock_clocks(struct sim_call *call, nvmlDevice_t device, const char *key, nvmlClockType_t type, unsigned int least, unsigned int most)
{
    sim_argument(call, "min_mhz", least);
    sim_argument(call, "max_mhz", most);
    if (least > most || most > clock_of(device->gpu, type, "max_mhz"))
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    if (type == NVML_CLOCK_MEM && (least != most || least != clock_of(device->gpu, type, "max_mhz")))
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT); /* these boards have one memory clock */
    json_object_set_new(sim_gpu_state(device->gpu), key, json_pack("[i, i]", (int)least, (int)most));
    return sim_end(call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int least, unsigned int most)
{
    ENTER(device, SIM_MUTATE);
    return lock_clocks(&call, device, "locked_gpu_clocks", NVML_CLOCK_GRAPHICS, least, most);
}
EXPORT nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, unsigned int least, unsigned int most)
{
    ENTER(device, SIM_MUTATE);
    if (before_ampere(device->gpu))
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    return lock_clocks(&call, device, "locked_memory_clocks", NVML_CLOCK_MEM, least, most);
}
EXPORT nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device)
{
    ENTER(device, SIM_MUTATE);
    json_object_del(sim_gpu_state(device->gpu), "locked_gpu_clocks");
    LEAVE(NVML_SUCCESS);
}
EXPORT nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device)
{
    ENTER(device, SIM_MUTATE);
    if (before_ampere(device->gpu))
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    json_object_del(sim_gpu_state(device->gpu), "locked_memory_clocks");
    LEAVE(NVML_SUCCESS);
}

/* Why the clocks are below their maximum now: a bit mask that a test can set. */
static nvmlReturn_t reasons(struct sim_call *call, nvmlDevice_t device, unsigned long long *mask)
{
    if (!mask)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    json_t *health = sim_health(device->gpu);
    *mask = (unsigned long long)sim_int(health, "clocks_event_reasons", sim_gpu_held(device->gpu) ? 0 : nvmlClocksEventReasonGpuIdle);
    json_decref(health);
    return sim_end(call, NVML_SUCCESS);
}
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *mask)
{
    ENTER(device, SIM_READ);
    return reasons(&call, device, mask);
}
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *mask)
{
    ENTER(device, SIM_READ);
    return reasons(&call, device, mask);
}

/* --- modes --- */
EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    ENTER(device, SIM_READ);
    if (!mode)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *mode = sim_int(sim_gpu_state(device->gpu), "persistence_mode", 0) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    LEAVE(NVML_SUCCESS);
}
EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    ENTER(device, SIM_MUTATE);
    sim_argument(&call, "mode", mode);
    if (mode > 1)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    json_object_set_new(sim_gpu_state(device->gpu), "persistence_mode", json_integer(mode));
    if (!mode && !sim_gpu_held(device->gpu))
        sim_forget_settings(device->gpu);
    LEAVE(NVML_SUCCESS);
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
    ENTER(device, SIM_READ);
    if (!mode)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *mode = (nvmlComputeMode_t)sim_int(sim_gpu_state(device->gpu), "compute_mode", NVML_COMPUTEMODE_DEFAULT);
    LEAVE(NVML_SUCCESS);
}
EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    ENTER(device, SIM_MUTATE);
    sim_argument(&call, "mode", mode);
    if (mode >= NVML_COMPUTEMODE_COUNT || mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (sim_mig_enabled(device->gpu))
        LEAVE(NVML_ERROR_NOT_SUPPORTED); /* the compute mode is then that of each MIG device */
    json_object_set_new(sim_gpu_state(device->gpu), "compute_mode", json_integer(mode));
    LEAVE(NVML_SUCCESS);
}
EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    ENTER(device, SIM_READ);
    if (!current || !pending)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    json_int_t now = sim_int(sim_gpu_state(device->gpu), "ecc_current", 1);
    *current = now ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    *pending = sim_int(sim_inforom(device->gpu), "ecc_pending", now) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    LEAVE(NVML_SUCCESS);
}
EXPORT nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    ENTER(device, SIM_READ);
    if (!mode)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *mode = NVML_FEATURE_ENABLED;
    LEAVE(NVML_SUCCESS);
}
EXPORT nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    ENTER(device, SIM_MUTATE);
    sim_argument(&call, "mode", mode);
    if (mode > 1)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    json_object_set_new(sim_inforom(device->gpu), "ecc_pending", json_integer(mode));
    sim_inforom_changed();
    LEAVE(NVML_SUCCESS);
}
