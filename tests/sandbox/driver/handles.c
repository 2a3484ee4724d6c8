/* Handles are interned: the same object has the same handle, and a handle outlives its object safely. */
#include "sim.h"

#include <stdlib.h>

#define MAX_HANDLES 8192

static struct nvmlDevice_st devices[MAX_HANDLES];
static struct nvmlGpuInstance_st instances[MAX_HANDLES];
static struct nvmlComputeInstance_st computes[MAX_HANDLES];
static int device_count, instance_count, compute_count;

void sim_forget_handles(void) { device_count = instance_count = compute_count = 0; }

nvmlDevice_t sim_device_handle(int gpu, int gi, int ci, json_int_t created)
{
    for (int i = 0; i < device_count; i++)
        if (devices[i].gpu == gpu && devices[i].gi == gi && devices[i].ci == ci && devices[i].created == created)
            return &devices[i];
    if (device_count == MAX_HANDLES)
        return NULL;
    devices[device_count] = (struct nvmlDevice_st){gpu, gi, ci, created};
    return &devices[device_count++];
}

nvmlGpuInstance_t sim_gi_handle(int gpu, unsigned int id, json_int_t created)
{
    for (int i = 0; i < instance_count; i++)
        if (instances[i].gpu == gpu && instances[i].id == id && instances[i].created == created)
            return &instances[i];
    if (instance_count == MAX_HANDLES)
        return NULL;
    instances[instance_count] = (struct nvmlGpuInstance_st){gpu, id, created};
    return &instances[instance_count++];
}

nvmlComputeInstance_t sim_ci_handle(int gpu, unsigned int gi, unsigned int id, json_int_t created)
{
    for (int i = 0; i < compute_count; i++)
        if (computes[i].gpu == gpu && computes[i].gi == gi && computes[i].id == id && computes[i].created == created)
            return &computes[i];
    if (compute_count == MAX_HANDLES)
        return NULL;
    computes[compute_count] = (struct nvmlComputeInstance_st){gpu, gi, id, created};
    return &computes[compute_count++];
}

static json_t *compute_of(int gpu, unsigned int gi, unsigned int ci, json_int_t created)
{
    json_t *compute = sim_compute_instance(sim_instance(gpu, gi), ci);
    return compute && sim_int(compute, "created", -1) == created ? compute : NULL;
}

bool sim_valid_device(nvmlDevice_t device)
{
    if (device < devices || device >= devices + device_count)
        return false;
    return device->gi < 0 || compute_of(device->gpu, (unsigned int)device->gi, (unsigned int)device->ci, device->created);
}

bool sim_valid_gi(nvmlGpuInstance_t handle)
{
    if (handle < instances || handle >= instances + instance_count)
        return false;
    json_t *instance = sim_instance(handle->gpu, handle->id);
    return instance && sim_int(instance, "created", -1) == handle->created;
}

bool sim_valid_ci(nvmlComputeInstance_t handle)
{
    if (handle < computes || handle >= computes + compute_count)
        return false;
    return compute_of(handle->gpu, handle->gi, handle->id, handle->created) != NULL;
}
