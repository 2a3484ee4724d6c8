/* Who uses a GPU: processes that NVML lists, open device files that it does not list, kernel modules. */
#include "sim.h"

#include <dirent.h>
#include <signal.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool alive(json_int_t pid)
{
    return pid == 0 || kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

json_t *sim_processes(int gpu)
{
    json_t *file = sim_small_file("/run/gpu-sandbox/holders.json"), *found = json_array(), *holder;
    size_t index;
    json_array_foreach(file, index, holder)
    {
        const char *kind = sim_string(holder, "kind"), *address = sim_string(holder, "gpu");
        if (kind && strcmp(kind, "nvml") == 0 && address && sim_gpu_by_pci(address) == gpu && alive(sim_int(holder, "pid", 0)))
            json_array_append(found, holder);
    }
    json_decref(file);
    return found;
}

bool sim_instance_held(int gpu, int gi, int ci)
{
    json_t *list = sim_processes(gpu), *holder;
    size_t index;
    bool held = false;
    json_array_foreach(list, index, holder)
    {
        json_int_t g = sim_int(holder, "gpu_instance_id", -1), c = sim_int(holder, "compute_instance_id", -1);
        if (g == gi && (ci < 0 || c < 0 || c == ci))
            held = true;
    }
    json_decref(list);
    return held;
}

static bool device_file_open(int gpu)
{
    char wanted[560], path[320], target[560];
    snprintf(wanted, sizeof wanted, "%s%d", sim_path("/dev/nvidia"), (int)sim_gpu_int(gpu, "minor_number", gpu));
    DIR *proc = opendir("/proc");
    struct dirent *process, *file;
    bool found = false;
    while (proc && !found && (process = readdir(proc))) {
        if (process->d_name[0] < '0' || process->d_name[0] > '9' || atoi(process->d_name) == (int)getpid())
            continue;
        snprintf(path, sizeof path, "/proc/%.20s/fd", process->d_name);
        DIR *files = opendir(path);
        while (files && !found && (file = readdir(files))) {
            snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", process->d_name, file->d_name);
            ssize_t length = readlink(path, target, sizeof target - 1);
            if (length > 0) {
                target[length] = 0;
                found = strcmp(target, wanted) == 0;
            }
        }
        if (files)
            closedir(files);
    }
    if (proc)
        closedir(proc);
    return found;
}

bool sim_gpu_held(int gpu)
{
    json_t *list = sim_processes(gpu);
    bool held = json_array_size(list) > 0;
    json_decref(list);
    return held || json_object_get(sim_modules(), "nvidia_drm") || device_file_open(gpu);
}
