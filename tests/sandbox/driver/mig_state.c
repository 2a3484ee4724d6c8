/* What MIG profiles a GPU offers and which instances it has now. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sim_mig_enabled(int gpu) { return sim_mig_capable(gpu) && sim_int(sim_gpu_state(gpu), "mig_current", 0) == 1; }

json_t *sim_instances(int gpu) { return json_object_get(sim_gpu_state(gpu), "instances"); }

json_t *sim_instance(int gpu, unsigned int id)
{
    size_t index;
    json_t *instance;
    json_array_foreach(sim_instances(gpu), index, instance)
        if (sim_int(instance, "id", -1) == (json_int_t)id)
            return instance;
    return NULL;
}

json_t *sim_compute_instance(json_t *instance, unsigned int id)
{
    size_t index;
    json_t *compute;
    json_array_foreach(json_object_get(instance, "compute_instances"), index, compute)
        if (sim_int(compute, "id", -1) == (json_int_t)id)
            return compute;
    return NULL;
}

void sim_drop_instances(int gpu)
{
    json_array_clear(sim_instances(gpu));
    sim_write_capabilities(gpu);
}

void sim_set_mode_now(int gpu, unsigned int mode)
{
    json_object_set_new(sim_gpu_state(gpu), "mig_current", json_integer(mode));
    sim_drop_instances(gpu);
}

/* "R525" and a driver of branch 515: the profile does not exist yet. */
static bool offered(json_t *profile)
{
    const char *minimum = sim_string(profile, "min_driver");
    return !minimum || sim_driver_branch() >= atoi(minimum + (minimum[0] == 'R'));
}

static json_t *find_profile(int gpu, const char *key, unsigned int value)
{
    size_t index;
    json_t *profile;
    json_array_foreach(json_object_get(sim_profile(gpu), "gpu_instance_profiles"), index, profile)
        if (sim_int(profile, key, -1) == (json_int_t)value && offered(profile))
            return profile;
    return NULL;
}

json_t *sim_gi_profile_by_index(int gpu, unsigned int index) { return find_profile(gpu, "nvml_profile_index", index); }

json_t *sim_gi_profile_by_id(int gpu, unsigned int id) { return find_profile(gpu, "profile_id", id); }

/* Memory of a profile differs with the driver branch: keys are "R515" or "R515_PCIe". */
json_int_t sim_profile_memory(int gpu, json_t *gi_profile)
{
    char branch[16], pcie[24];
    json_t *others = json_object_get(gi_profile, "memory_mib_other_drivers");
    snprintf(branch, sizeof branch, "R%d", sim_driver_branch());
    snprintf(pcie, sizeof pcie, "%s_PCIe", branch);
    json_int_t memory = sim_int(others, branch, -1);
    if (memory < 0 && strstr(sim_gpu_string(gpu, "name"), "PCIe"))
        memory = sim_int(others, pcie, -1);
    return memory < 0 ? sim_int(gi_profile, "memory_mib", 0) : memory;
}

/* NVML_COMPUTE_INSTANCE_PROFILE_* of a full instance by its slices. */
static unsigned int full_index(json_int_t slices)
{
    static const unsigned int by_slices[] = {0, 0, 1, 2, 3, 3, 6, 4, 5};
    return by_slices[slices >= 0 && slices <= 8 ? slices : 0];
}

static json_t *ci_profile(unsigned int index, const char *prefix, const char *name, json_int_t slices, json_int_t count, json_int_t sm)
{
    char text[96];
    snprintf(text, sizeof text, "%s%s", prefix, name);
    return json_pack("{s:i, s:s, s:I, s:I, s:I}", "ci_profile_index", (int)index, "ci_name", text, "slices", slices, "max_instances",
                     count, "multiprocessors", sm);
}

/* The table of the model where it has one; else the rule that the tables follow: 1c, 2c, 3c, 4c and the full instance. */
json_t *sim_ci_profiles(int gpu, json_t *gi_profile)
{
    json_t *tables = json_object_get(json_object_get(sim_profile(gpu), "compute_instance_profiles"), "by_gpu_instance_profile");
    const char *name = sim_string(gi_profile, "name");
    json_t *table = json_object_get(tables, name), *list = json_array(), *row;
    json_int_t slices = sim_int(gi_profile, "slice_count", 1), sm = sim_int(gi_profile, "multiprocessors", slices);
    size_t index;
    if (table) {
        json_array_foreach(table, index, row)
        {
            json_t *copy = json_deep_copy(row);
            json_int_t count = sm > 0 ? sim_int(row, "multiprocessors", 0) * slices / sm : 1;
            json_object_set_new(copy, "slices", json_integer(count < 1 ? 1 : count));
            json_array_append_new(list, copy);
        }
        return list;
    }
    for (json_int_t c = 1; c < slices; c++) {
        char prefix[8];
        if (c > 4)
            continue;
        snprintf(prefix, sizeof prefix, "%dc.", (int)c);
        json_array_append_new(list, ci_profile(full_index(c), prefix, name, c, c == 2 && slices == 3 ? 1 : slices / c, sm * c / slices));
    }
    /* Hopper and later: the double-memory 1g profile has its own compute profile (1_SLICE_REV1). */
    unsigned int full = full_index(slices);
    if (sim_int(gi_profile, "nvml_profile_index", 0) == NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 && !sim_is_ampere(gpu))
        full = NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1;
    json_array_append_new(list, ci_profile(full, "", name, slices, 1, sm));
    return list;
}
