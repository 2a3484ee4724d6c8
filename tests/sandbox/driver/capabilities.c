/* /proc/driver/nvidia/capabilities: the kernel module lists there what may be opened for each instance. */
#include "sim.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BASE "/run/gpu-sandbox/proc/driver/nvidia/capabilities"

/* Numbering of nvidia-caps minors as in the driver's mig-minors: config 1, monitor 2, then per GPU, GI and CI. */
static int gi_minor(int gpu, int gi) { return 3 + gpu * 135 + gi * 9; }

static void remove_tree(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    char child[800];
    while (folder && (entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        if (unlink(child) != 0)
            remove_tree(child);
    }
    if (folder)
        closedir(folder);
    rmdir(path);
}

static void access_file(const char *folder, int minor)
{
    char path[800];
    mkdir(folder, 0555);
    snprintf(path, sizeof path, "%s/access", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "DeviceFileMinor: %d\nDeviceFileMode: 256\nDeviceFileModify: 1\n", minor);
    fclose(file);
}

void sim_write_capabilities(int gpu)
{
    char mig[600], folder[700];
    int minor = (int)sim_gpu_int(gpu, "minor_number", gpu);
    size_t g, c;
    json_t *instance, *compute;
    if (access(sim_path(BASE), W_OK) != 0)
        return; /* the tree is made when the kernel module loads; a host-side test has none */
    snprintf(mig, sizeof mig, "%s/gpu%d", sim_path(BASE), minor);
    mkdir(mig, 0555);
    strncat(mig, "/mig", sizeof mig - strlen(mig) - 1);
    remove_tree(mig);
    if (!sim_mig_enabled(gpu))
        return;
    mkdir(mig, 0555);
    json_array_foreach(sim_instances(gpu), g, instance)
    {
        int gi = (int)sim_int(instance, "id", 0);
        snprintf(folder, sizeof folder, "%s/gi%d", mig, gi);
        access_file(folder, gi_minor(minor, gi));
        json_array_foreach(json_object_get(instance, "compute_instances"), c, compute)
        {
            int ci = (int)sim_int(compute, "id", 0);
            snprintf(folder, sizeof folder, "%s/gi%d/ci%d", mig, gi, ci);
            access_file(folder, gi_minor(minor, gi) + 1 + ci);
        }
    }
}
