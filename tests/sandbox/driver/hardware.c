/* What the hardware is: read from the description that the sandbox's mix was compiled to. */
#include "sim.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *gpus(void) { return json_object_get(sim_hardware(), "gpus"); }

int sim_gpu_count(void)
{
    size_t count = json_array_size(gpus());
    return count > SIM_MAX_GPUS ? SIM_MAX_GPUS : (int)count;
}

json_t *sim_gpu(int gpu) { return json_array_get(gpus(), (size_t)gpu); }

json_t *sim_profile(int gpu)
{
    return json_object_get(json_object_get(sim_hardware(), "gpu_profiles"), sim_gpu_string(gpu, "gpu_profile"));
}

const char *sim_gpu_string(int gpu, const char *key)
{
    const char *text = sim_string(sim_gpu(gpu), key);
    return text ? text : "";
}

json_int_t sim_gpu_int(int gpu, const char *key, json_int_t otherwise) { return sim_int(sim_gpu(gpu), key, otherwise); }

/* "0000:07:00.0", "00000000:07:00.0" and "07:00.0" name the same GPU. */
int sim_gpu_by_pci(const char *address)
{
    unsigned int domain = 0, bus, device, function = 0;
    if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
        domain = 0;
        if (sscanf(address, "%x:%x.%x", &bus, &device, &function) < 2)
            return -1;
    }
    for (int gpu = 0; gpu < sim_gpu_count(); gpu++) {
        unsigned int d, b, v, f;
        if (sscanf(sim_gpu_string(gpu, "pci_address"), "%x:%x:%x.%x", &d, &b, &v, &f) == 4 && d == domain && b == bus &&
            v == device && f == function)
            return gpu;
    }
    return -1;
}

bool sim_mig_capable(int gpu) { return json_array_size(json_object_get(sim_profile(gpu), "gpu_instance_profiles")) > 0; }

bool sim_is_ampere(int gpu)
{
    const char *architecture = sim_string(sim_profile(gpu), "architecture");
    return architecture && strcasecmp(architecture, "ampere") == 0;
}

int sim_driver_branch(void) { return atoi(DRIVER_VERSION); }

bool sim_has_nvswitch(void) { return json_array_size(json_object_get(sim_hardware(), "nvswitches")) > 0; }

/* The fabric manager marks itself while it runs; a marker whose process is gone is stale. */
bool sim_fabric_ready(void)
{
    if (!sim_has_nvswitch())
        return true;
    json_t *marker = sim_small_file("/run/gpu-sandbox/fabricmanager.json");
    const char *version = sim_string(marker, "version");
    json_int_t pid = sim_int(marker, "pid", 0);
    bool ready = version && strcmp(version, DRIVER_VERSION) == 0 && (pid == 0 || kill((pid_t)pid, 0) == 0 || sim_uid() != 0);
    json_decref(marker);
    return ready;
}

/* New reference or NULL: the health faults that a test has set for this GPU. */
json_t *sim_health(int gpu)
{
    json_t *file = sim_small_file("/run/gpu-sandbox/health.json");
    if (!file)
        file = sim_small_file("/etc/gpu-sandbox/health.json");
    json_t *entry = json_object_get(file, sim_gpu_string(gpu, "pci_address"));
    json_incref(entry);
    json_decref(file);
    return entry;
}

nvmlReturn_t sim_copy(char *target, unsigned int length, const char *text)
{
    if (!target || !text)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) + 1 > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(target, text);
    return NVML_SUCCESS;
}
