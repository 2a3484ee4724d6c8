/* Who is near whom: PCIe, NUMA, NVLink. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTER(device)                                                       \
    struct sim_call call;                                                   \
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);     \
    if (result != NVML_SUCCESS)                                             \
        return result
#define LEAVE(value) return sim_end(&call, value)

/* pci_path lists the bridges from the root port down. Each PCIe switch is an upstream and a downstream port. */
static nvmlGpuTopologyLevel_t level_between(int a, int b)
{
    if (a == b)
        return NVML_TOPOLOGY_INTERNAL;
    json_t *p = json_object_get(sim_gpu(a), "pci_path"), *q = json_object_get(sim_gpu(b), "pci_path");
    size_t common = 0, left = json_array_size(p), right = json_array_size(q);
    while (common < left && common < right &&
           strcmp(json_string_value(json_array_get(p, common)), json_string_value(json_array_get(q, common))) == 0)
        common++;
    if (common == 0)
        return sim_gpu_int(a, "numa_node", -1) == sim_gpu_int(b, "numa_node", -1) ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
    size_t apart = left > right ? left - common : right - common;
    return apart <= 1 ? NVML_TOPOLOGY_SINGLE : NVML_TOPOLOGY_MULTIPLE;
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level)
{
    ENTER(device);
    if (!level || !sim_valid_device(other))
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *level = level_between(device->gpu, other->gpu);
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned int *count, nvmlDevice_t *list)
{
    ENTER(device);
    if (!count)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    unsigned int room = list ? *count : 0, total = 0;
    for (int gpu = 0; gpu < sim_gpu_count(); gpu++) {
        if (gpu == device->gpu || level_between(device->gpu, gpu) != level)
            continue;
        if (total < room)
            list[total] = sim_device_handle(gpu, -1, -1, 0);
        total++;
    }
    *count = total;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device, nvmlDevice_t other, int *same)
{
    ENTER(device);
    if (!same || !sim_valid_device(other))
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    *same = device->gpu == other->gpu;
    LEAVE(NVML_SUCCESS);
}

/* --- NVLink --- */
static json_t *links(int gpu) { return json_object_get(sim_gpu(gpu), "nvlinks"); }

static json_t *link_of(int gpu, unsigned int link) { return json_array_get(links(gpu), link); }

static bool link_up(int gpu, unsigned int link)
{
    json_t *health = sim_health(gpu), *down = json_object_get(health, "nvlinks_down"), *entry;
    size_t index;
    bool up = sim_fabric_ready();
    json_array_foreach(down, index, entry)
        if (json_integer_value(entry) == (json_int_t)link)
            up = false;
    json_decref(health);
    return up;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *state)
{
    ENTER(device);
    if (!state)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (!link_of(device->gpu, link))
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    *state = link_up(device->gpu, link) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version)
{
    ENTER(device);
    if (!version)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (!link_of(device->gpu, link))
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    *version = (unsigned int)sim_int(link_of(device->gpu, link), "version", 3);
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, nvmlNvLinkCapability_t capability, unsigned int *value)
{
    ENTER(device);
    if (!value || capability >= NVML_NVLINK_CAP_COUNT)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (!link_of(device->gpu, link))
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    *value = capability == NVML_NVLINK_CAP_P2P_SUPPORTED || capability == NVML_NVLINK_CAP_SYSMEM_ACCESS || capability == NVML_NVLINK_CAP_P2P_ATOMICS ||
             capability == NVML_NVLINK_CAP_VALID;
    LEAVE(NVML_SUCCESS);
}

static nvmlReturn_t remote_pci(struct sim_call *call, nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    unsigned int domain = 0, bus = 0, slot = 0, function = 0;
    json_t *entry = link_of(device->gpu, link);
    if (!pci)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    if (!entry)
        return sim_end(call, NVML_ERROR_NOT_SUPPORTED);
    if (!link_up(device->gpu, link) || !sim_string(entry, "remote_pci"))
        return sim_end(call, NVML_ERROR_NOT_SUPPORTED);
    memset(pci, 0, sizeof *pci);
    sscanf(sim_string(entry, "remote_pci"), "%x:%x:%x.%x", &domain, &bus, &slot, &function);
    pci->domain = domain;
    pci->bus = bus & 0xff;
    pci->device = slot & 0x1f;
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.%u", domain, pci->bus, pci->device, function);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.%u", domain & 0xffff, pci->bus, pci->device, function);
    return sim_end(call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    ENTER(device);
    return remote_pci(&call, device, link, pci);
}
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    ENTER(device);
    return remote_pci(&call, device, link, pci);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *type)
{
    ENTER(device);
    if (!type)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    json_t *entry = link_of(device->gpu, link);
    if (!entry || !link_up(device->gpu, link))
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    const char *kind = sim_string(entry, "remote_type");
    *type = kind && strcmp(kind, "switch") == 0 ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    LEAVE(NVML_SUCCESS);
}

/* Two GPUs reach each other by NVLink through the switches, or by a link whose other end is that GPU. */
static bool linked(int a, int b)
{
    size_t index;
    json_t *entry;
    json_array_foreach(links(a), index, entry)
    {
        const char *kind = sim_string(entry, "remote_type"), *remote = sim_string(entry, "remote_pci");
        if (!link_up(a, (unsigned int)index))
            continue;
        if (kind && strcmp(kind, "switch") == 0 && json_array_size(links(b)) > 0)
            return true;
        if (remote && sim_gpu_by_pci(remote) == b)
            return true;
    }
    return false;
}

EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t caps, nvmlGpuP2PStatus_t *status)
{
    ENTER(device);
    if (!status || !sim_valid_device(other) || device->gpu == other->gpu)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    bool nvlink = linked(device->gpu, other->gpu), same_node = level_between(device->gpu, other->gpu) < NVML_TOPOLOGY_SYSTEM;
    if (sim_mig_enabled(device->gpu) || sim_mig_enabled(other->gpu))
        *status = NVML_P2P_STATUS_NOT_SUPPORTED;
    else if (caps == NVML_P2P_CAPS_INDEX_NVLINK)
        *status = nvlink ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    else
        *status = nvlink || same_node ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
    LEAVE(NVML_SUCCESS);
}

/* Fabric information is for NVLink networks of Hopper and later. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    ENTER(device);
    if (!info)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (sim_is_ampere(device->gpu) || !sim_mig_capable(device->gpu) || !sim_has_nvswitch())
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    memset(info, 0, sizeof *info);
    info->state = sim_fabric_ready() ? NVML_GPU_FABRIC_STATE_COMPLETED : NVML_GPU_FABRIC_STATE_IN_PROGRESS;
    LEAVE(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
    ENTER(device);
    if (!info)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    if (sim_is_ampere(device->gpu) || !sim_mig_capable(device->gpu) || !sim_has_nvswitch())
        LEAVE(NVML_ERROR_NOT_SUPPORTED);
    info->state = sim_fabric_ready() ? NVML_GPU_FABRIC_STATE_COMPLETED : NVML_GPU_FABRIC_STATE_IN_PROGRESS;
    info->status = NVML_SUCCESS;
    LEAVE(NVML_SUCCESS);
}

/* --- NUMA --- */
static void set_bits(const char *list, unsigned long *set, unsigned int words)
{
    while (list && *list) {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (end == list)
            return;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long bit = first; bit <= last && bit / (8 * sizeof *set) < words; bit++)
            set[bit / (8 * sizeof *set)] |= 1UL << bit % (8 * sizeof *set);
        list = *end == ',' ? end + 1 : end;
        if (*end != ',')
            return;
    }
}

static nvmlReturn_t cpus(struct sim_call *call, nvmlDevice_t device, unsigned int words, unsigned long *set)
{
    if (!set || words == 0)
        return sim_end(call, NVML_ERROR_INVALID_ARGUMENT);
    size_t index;
    json_t *node;
    memset(set, 0, words * sizeof *set);
    json_array_foreach(json_object_get(sim_hardware(), "numa_nodes"), index, node)
        if (sim_int(node, "id", -1) == sim_gpu_int(device->gpu, "numa_node", -1))
            set_bits(sim_string(node, "cpulist"), set, words);
    return sim_end(call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set)
{
    ENTER(device);
    return cpus(&call, device, words, set);
}
EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words, unsigned long *set, nvmlAffinityScope_t scope)
{
    (void)scope;
    ENTER(device);
    return cpus(&call, device, words, set);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set, nvmlAffinityScope_t scope)
{
    (void)scope;
    ENTER(device);
    if (!set || words == 0)
        LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    memset(set, 0, words * sizeof *set);
    json_int_t node = sim_gpu_int(device->gpu, "numa_node", -1);
    if (node >= 0 && (size_t)node < words * 8 * sizeof *set)
        set[(size_t)node / (8 * sizeof *set)] |= 1UL << (size_t)node % (8 * sizeof *set);
    LEAVE(NVML_SUCCESS);
}

/* This is the node of a GPU whose memory is a NUMA node of its own (Grace): these GPUs have none. */
EXPORT nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    ENTER(device);
    LEAVE(node ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT);
}
