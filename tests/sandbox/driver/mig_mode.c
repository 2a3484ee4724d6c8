/* MIG mode, pending and current, and the reset that makes one the other. */
#include "sim.h"

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_READ, device);
    if (result != NVML_SUCCESS)
        return result;
    if (!current || !pending)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    if (device->gi >= 0 || !sim_mig_capable(device->gpu))
        return sim_end(&call, NVML_ERROR_NOT_SUPPORTED);
    *current = (unsigned int)sim_int(sim_gpu_state(device->gpu), "mig_current", 0);
    *pending = (unsigned int)sim_int(sim_gpu_state(device->gpu), "mig_pending", 0);
    return sim_end(&call, NVML_SUCCESS);
}

static bool passthrough(int gpu) { return json_is_true(json_object_get(sim_gpu(gpu), "passthrough")); }

/* Ampere resets the GPU to change its mode; Hopper and later need only that nobody uses it. */
static nvmlReturn_t activate(int gpu, unsigned int mode)
{
    if (sim_int(sim_gpu_state(gpu), "mig_current", 0) == (json_int_t)mode)
        return NVML_SUCCESS;
    if (json_array_size(sim_instances(gpu)) > 0 || sim_gpu_held(gpu))
        return NVML_ERROR_IN_USE;
    if (sim_is_ampere(gpu) && (passthrough(gpu) || !sim_fabric_ready()))
        return NVML_ERROR_RESET_REQUIRED;
    if (sim_is_ampere(gpu))
        sim_forget_settings(gpu); /* the change resets the GPU */
    sim_set_mode_now(gpu, mode);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    struct sim_call call;
    nvmlReturn_t result = sim_begin(&call, __func__, SIM_MUTATE, device), injected;
    if (result != NVML_SUCCESS)
        return result;
    sim_argument(&call, "mode", mode);
    if (mode > 1 || !activation || device->gi >= 0)
        return sim_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    int gpu = device->gpu;
    if (!sim_mig_capable(gpu))
        return sim_end(&call, NVML_ERROR_NOT_SUPPORTED);
    json_object_set_new(sim_gpu_state(gpu), "mig_pending", json_integer(mode));
    if (sim_is_ampere(gpu)) {
        json_object_set_new(sim_inforom(gpu), "mig_mode", json_integer(mode));
        sim_inforom_changed();
    }
    /* A fault of this pseudo call is an activation that fails after the mode was made pending. */
    *activation = sim_fault("activation", gpu, &injected) ? injected : activate(gpu, mode);
    sim_argument(&call, "activation", *activation);
    return sim_end(&call, NVML_SUCCESS);
}

/* Not part of NVML: what `nvidia-smi --gpu-reset` asks of the kernel module. */
EXPORT nvmlReturn_t gpuSandboxDeviceReset(const char *pci_address)
{
    struct sim_call call;
    if (!sim_store_open())
        return NVML_ERROR_DRIVER_NOT_LOADED;
    int gpu = pci_address ? sim_gpu_by_pci(pci_address) : -1;
    nvmlReturn_t result = sim_begin_gpu(&call, __func__, SIM_MUTATE, gpu);
    if (result != NVML_SUCCESS)
        return result;
    if (gpu < 0)
        return sim_end(&call, NVML_ERROR_NOT_FOUND);
    if (passthrough(gpu))
        return sim_end(&call, NVML_ERROR_NOT_SUPPORTED);
    if (sim_gpu_held(gpu))
        return sim_end(&call, NVML_ERROR_IN_USE);
    if (!sim_fabric_ready())
        return sim_end(&call, NVML_ERROR_INVALID_STATE);
    json_t *state = sim_gpu_state(gpu);
    sim_set_mode_now(gpu, (unsigned int)sim_int(state, "mig_pending", 0));
    json_object_set_new(state, "ecc_current", json_integer(sim_int(sim_inforom(gpu), "ecc_pending", sim_int(state, "ecc_current", 1))));
    sim_forget_settings(gpu);
    return sim_end(&call, NVML_SUCCESS);
}
