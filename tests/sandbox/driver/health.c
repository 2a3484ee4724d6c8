/* Health: what a test has set for a GPU, else a GPU without faults. */
#include "sim.h"

#define ENTER(device)                                                       \
    struct sim_call call;                                                   \
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);     \
    if (result != NVML_SUCCESS)                                             \
        return result
#define LEAVE(value) return sim_end(&call, value)

static json_int_t fact(int gpu, const char *key)
{
    json_t *health = sim_health(gpu), *value = json_object_get(health, key);
    json_int_t number = json_is_true(value) ? 1 : sim_int(health, key, 0);
    json_decref(health);
    return number;
}

/* Ampere and later remap rows; Volta retires pages. */
static bool remaps(int gpu) { return sim_mig_capable(gpu); }

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable, unsigned int *uncorrectable, unsigned int *pending, unsigned int *failed)
{
    ENTER(device);
    if (!correctable || !uncorrectable || !pending || !failed)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (!remaps(device->gpu))
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    *correctable = (unsigned int)fact(device->gpu, "remapped_rows_correctable");
    *uncorrectable = (unsigned int)fact(device->gpu, "remapped_rows_uncorrectable");
    *pending = (unsigned int)fact(device->gpu, "remapped_rows_pending");
    *failed = (unsigned int)fact(device->gpu, "remapped_rows_failed");
    LEAVE(NVML_SUCCESS);
}

static nvmlReturn_t retired(struct sim_call *call, nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count)
{
    if (!count || cause >= NVML_PAGE_RETIREMENT_CAUSE_COUNT)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    if (remaps(device->gpu))
        return sim_end(call, NVML_ERROR_NOT_SUPPORTED);
    unsigned int room = *count;
    *count = (unsigned int)fact(device->gpu, cause == NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR ? "retired_pages_double_bit" : "retired_pages_single_bit");
    return sim_end(call, *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count, unsigned long long *addresses)
{
    ENTER(device);
    for (unsigned int i = 0; addresses && count && i < *count; i++)
        addresses[i] = 0x1000ULL * (i + 1);
    return retired(&call, device, cause, count);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count, unsigned long long *addresses, unsigned long long *times)
{
    ENTER(device);
    for (unsigned int i = 0; addresses && times && count && i < *count; i++) {
        addresses[i] = 0x1000ULL * (i + 1);
        times[i] = 0;
    }
    return retired(&call, device, cause, count);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t *pending)
{
    ENTER(device);
    if (!pending)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (remaps(device->gpu))
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    *pending = fact(device->gpu, "retired_pages_pending") ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *count)
{
    ENTER(device);
    if (!count || type >= NVML_MEMORY_ERROR_TYPE_COUNT || counter >= NVML_ECC_COUNTER_TYPE_COUNT)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *count = (unsigned long long)fact(device->gpu, type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED ? "ecc_uncorrected" : "ecc_corrected");
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, nvmlMemoryLocation_t location, unsigned long long *count)
{
    ENTER(device);
    if (!count || type >= NVML_MEMORY_ERROR_TYPE_COUNT || counter >= NVML_ECC_COUNTER_TYPE_COUNT)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (location != NVML_MEMORY_LOCATION_DRAM && location != NVML_MEMORY_LOCATION_SRAM)
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    bool dram = location == NVML_MEMORY_LOCATION_DRAM;
    *count = dram ? (unsigned long long)fact(device->gpu, type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED ? "ecc_uncorrected" : "ecc_corrected") : 0;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link, nvmlNvLinkErrorCounter_t counter, unsigned long long *count)
{
    ENTER(device);
    if (!count || counter >= NVML_NVLINK_ERROR_COUNT)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (link >= json_array_size(json_object_get(sim_gpu(device->gpu), "nvlinks")))
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    *count = counter == NVML_NVLINK_ERROR_DL_CRC_FLIT ? (unsigned long long)fact(device->gpu, "nvlink_errors") : 0;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int *count)
{
    ENTER(device);
    if (!count)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *count = (unsigned int)fact(device->gpu, "pcie_replays");
    LEAVE(NVML_SUCCESS);
}
