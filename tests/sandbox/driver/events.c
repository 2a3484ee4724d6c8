/* Event sets: they exist, a wait ends by its timeout. */
#include "sim.h"

#include <stdlib.h>
#include <time.h>

struct nvmlEventSet_st {
    unsigned long long types;
};

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    *set = calloc(1, sizeof **set);
    return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    free(set);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!types)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    *types = nvmlEventTypeXidCriticalError | nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeClock;
    return sim_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!set)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    set->types |= types;
    return sim_end(&call, NVML_SUCCESS);
}

static nvmlReturn_t wait_for(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds)
{
    if (!set || !data)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct timespec wait = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&wait, NULL);
    return NVML_ERROR_TIMEOUT;
}
EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int ms) { return wait_for(set, data, ms); }
EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int ms) { return wait_for(set, data, ms); }
