/* Which GPUs there are and what each is. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

nvmlDevice_t sim_find_uuid(const char *uuid);

#define ENTER(device)                                                       \
    struct sim_call call;                                                   \
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);     \
    if (result != NVML_SUCCESS)                                             \
        return result
#define LEAVE(value) return sim_end(&call, value)

/* --- the system --- */
EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, __func__, SIM_READ, -1);
    if (result != NVML_SUCCESS)
        return result;
    LEAVE(sim_copy(version, length, DRIVER_VERSION));
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    char text[80];
    snprintf(text, sizeof text, "%d.%s", sim_driver_branch() >= 580 ? 13 : 12, DRIVER_VERSION);
    return sim_copy(version, length, text);
}

/* The CUDA version that a driver branch brings: 535 has 12.2, 580 has 13.0. */
static int cuda_version(void) { return sim_driver_branch() >= 580 ? 13000 : 12020; }

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = cuda_version();
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    char path[64], text[256] = "";
    if (!name)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return NVML_ERROR_NOT_FOUND;
    size_t read = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return read ? sim_copy(name, length, text) : NVML_ERROR_NOT_FOUND;
}

/* --- enumeration --- */
static nvmlReturn_t device_count(const char *name, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, name, SIM_READ, -1);
    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *count = (unsigned int)sim_gpu_count();
    LEAVE(NVML_SUCCESS);
}
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) { return device_count(__func__, count); }
EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { return device_count(__func__, count); }

static nvmlReturn_t found(struct sim_call *call, int gpu, nvmlDevice_t *out)
{
    if (!out)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    if (gpu < 0)
        return sim_end(call, NVML_ERROR_NOT_FOUND);
    json_t *health = sim_health(gpu);
    bool lost = json_is_true(json_object_get(health, "lost"));
    json_decref(health);
    *out = sim_device_handle(gpu, -1, -1, 0);
    return sim_end(call, lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS);
}

static nvmlReturn_t by_index(const char *name, unsigned int index, nvmlDevice_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, name, SIM_READ, -1);
    if (result != NVML_SUCCESS)
        return result;
    if (index >= (unsigned int)sim_gpu_count())
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    return found(&call, (int)index, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *out) { return by_index(__func__, index, out); }
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *out) { return by_index(__func__, index, out); }

static nvmlReturn_t by_pci(const char *name, const char *address, nvmlDevice_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, name, SIM_READ, -1);
    if (result != NVML_SUCCESS)
        return result;
    if (!address)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    return found(&call, sim_gpu_by_pci(address), out);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *out) { return by_pci(__func__, address, out); }
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *address, nvmlDevice_t *out) { return by_pci(__func__, address, out); }

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, __func__, SIM_READ, -1);
    if (result != NVML_SUCCESS)
        return result;
    if (!uuid || !out)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *out = sim_find_uuid(uuid);
    LEAVE(*out ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *out)
{
    if (!uuid || uuid->type != NVML_UUID_TYPE_ASCII)
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByUUID(uuid->value.str, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *out)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin_gpu(&call, __func__, SIM_READ, -1);
    if (result != NVML_SUCCESS)
        return result;
    int match = -1;
    for (int gpu = 0; serial && gpu < sim_gpu_count(); gpu++)
        if (strcmp(sim_gpu_string(gpu, "serial"), serial) == 0)
            match = gpu;
    return found(&call, match, out);
}

/* --- identity --- */
EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    char text[160];
    ENTER(device);
    if (device->gi < 0)
        LEAVE(sim_copy(name, length, sim_gpu_string(device->gpu, "name")));
    json_t *instance = sim_instance(device->gpu, (unsigned int)device->gi);
    json_t *profile = sim_gi_profile_by_id(device->gpu, (unsigned int)sim_int(instance, "profile_id", 0));
    snprintf(text, sizeof text, "%s MIG %s", sim_gpu_string(device->gpu, "name"), sim_string(profile, "name"));
    LEAVE(sim_copy(name, length, text));
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    ENTER(device);
    if (device->gi < 0)
        LEAVE(sim_copy(uuid, length, sim_gpu_string(device->gpu, "uuid")));
    json_t *compute = sim_compute_instance(sim_instance(device->gpu, (unsigned int)device->gi), (unsigned int)device->ci);
    LEAVE(sim_copy(uuid, length, sim_string(compute, "uuid")));
}

#define TEXT(function, key)                                                               \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, char *text, unsigned int length)     \
    {                                                                                     \
        ENTER(device);                                                                    \
        const char *value = sim_gpu_string(device->gpu, key);                             \
        LEAVE(*value ? sim_copy(text, length, value) : NVML_ERROR_NOT_SUPPORTED);         \
    }
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
TEXT(nvmlDeviceGetBoardPartNumber, "board_part_number")
TEXT(nvmlDeviceGetInforomImageVersion, "inforom_image")

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    ENTER(device);
    if (!index)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *index = (unsigned int)device->gpu;
    if (device->gi >= 0) {
        json_t *compute = sim_compute_instance(sim_instance(device->gpu, (unsigned int)device->gi), (unsigned int)device->ci);
        *index = (unsigned int)sim_int(compute, "slot", 0);
    }
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
    ENTER(device);
    if (!minor)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *minor = (unsigned int)sim_gpu_int(device->gpu, "minor_number", device->gpu);
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand)
{
    ENTER(device);
    if (!brand)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *brand = strncmp(sim_gpu_string(device->gpu, "name"), "Tesla", 5) == 0 ? NVML_BRAND_TESLA : NVML_BRAND_NVIDIA;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *out)
{
    static const struct {
        const char *name;
        nvmlDeviceArchitecture_t value;
    } names[] = {{"volta", NVML_DEVICE_ARCH_VOLTA}, {"turing", NVML_DEVICE_ARCH_TURING},       {"ampere", NVML_DEVICE_ARCH_AMPERE},
                 {"ada", NVML_DEVICE_ARCH_ADA},     {"hopper", NVML_DEVICE_ARCH_HOPPER}, {"blackwell", NVML_DEVICE_ARCH_BLACKWELL}};
    ENTER(device);
    if (!out)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    const char *architecture = sim_string(sim_profile(device->gpu), "architecture");
    *out = NVML_DEVICE_ARCH_UNKNOWN;
    for (size_t i = 0; architecture && i < sizeof names / sizeof *names; i++)
        if (strcasecmp(names[i].name, architecture) == 0)
            *out = names[i].value;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    ENTER(device);
    const char *text = sim_string(sim_profile(device->gpu), "compute_capability");
    if (!major || !minor || !text || sscanf(text, "%d.%d", major, minor) != 2)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *id)
{
    ENTER(device);
    if (!id)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *id = (unsigned int)device->gpu + 0x100;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int *multi)
{
    ENTER(device);
    if (!multi)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *multi = 0;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, nvmlGpuVirtualizationMode_t *mode)
{
    ENTER(device);
    if (!mode)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *mode = json_is_true(json_object_get(sim_gpu(device->gpu), "passthrough")) ? NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH
                                                                              : NVML_GPU_VIRTUALIZATION_MODE_NONE;
    LEAVE(NVML_SUCCESS);
}

/* --- PCI --- */
static void pci_of(int gpu, nvmlPciInfo_t *pci)
{
    unsigned int domain = 0, bus = 0, slot = 0, function = 0;
    memset(pci, 0, sizeof *pci);
    sscanf(sim_gpu_string(gpu, "pci_address"), "%x:%x:%x.%x", &domain, &bus, &slot, &function);
    pci->domain = domain;
    pci->bus = bus & 0xff;
    pci->device = slot & 0x1f;
    pci->pciDeviceId = (unsigned int)strtoul(sim_gpu_string(gpu, "device_id"), NULL, 16) << 16 | 0x10de;
    pci->pciSubSystemId = (unsigned int)strtoul(sim_gpu_string(gpu, "subsystem_id"), NULL, 16) << 16 | 0x10de;
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.%u", domain, pci->bus, pci->device, function);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.%u", domain & 0xffff, pci->bus, pci->device, function);
}

#define PCI(function)                                                      \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, nvmlPciInfo_t *pci)  \
    {                                                                      \
        ENTER(device);                                                     \
        if (!pci)                                                          \
            LEAVE(NVML_ERROR_INVALID_ARGUMENT);                            \
        pci_of(device->gpu, pci);                                          \
        LEAVE(NVML_SUCCESS);                                               \
    }
PCI(nvmlDeviceGetPciInfo)
PCI(nvmlDeviceGetPciInfo_v2)
PCI(nvmlDeviceGetPciInfo_v3)

static unsigned int pcie(int gpu, const char *now, const char *most)
{
    json_t *health = sim_health(gpu);
    json_int_t maximum = sim_gpu_int(gpu, most, strcmp(most, "pcie_width") == 0 ? 16 : 4);
    json_int_t value = now ? sim_int(health, now, maximum) : maximum;
    json_decref(health);
    return (unsigned int)value;
}

#define PCIE(function, now, most)                                            \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *value)   \
    {                                                                        \
        ENTER(device);                                                       \
        if (!value)                                                          \
            LEAVE(NVML_ERROR_INVALID_ARGUMENT);                              \
        *value = pcie(device->gpu, now, most);                               \
        LEAVE(NVML_SUCCESS);                                                 \
    }
PCIE(nvmlDeviceGetMaxPcieLinkGeneration, NULL, "pcie_generation")
PCIE(nvmlDeviceGetGpuMaxPcieLinkGeneration, NULL, "pcie_generation")
PCIE(nvmlDeviceGetMaxPcieLinkWidth, NULL, "pcie_width")
PCIE(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation", "pcie_generation")
PCIE(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", "pcie_width")
