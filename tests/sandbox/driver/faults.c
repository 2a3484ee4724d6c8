/* Injected faults and latency: for tests, by files of the simulated machine. */
#define _GNU_SOURCE /* FNM_EXTMATCH: a fault may name several calls, @(a|b) */
#include "sim.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COUNTERS "/run/gpu-sandbox/fault-counters.json"

static json_t *fault_list(void)
{
    json_t *list = sim_small_file("/run/gpu-sandbox/faults.json");
    return list ? list : sim_small_file("/etc/gpu-sandbox/faults.json");
}

/* A driver that hangs does not die of SIGKILL. The freezer of cgroup v1 does that to a process; without it, the call only never returns. */
static void hang(void)
{
    char folder[512], path[600];
    snprintf(folder, sizeof folder, "/sys/fs/cgroup/freezer/gpu-sandbox-hang-%d", (int)getpid());
    if (mkdir(folder, 0755) == 0) {
        FILE *file;
        snprintf(path, sizeof path, "%s/cgroup.procs", folder);
        if ((file = fopen(path, "w"))) {
            fprintf(file, "%d", (int)getpid());
            fclose(file);
        }
        snprintf(path, sizeof path, "%s/freezer.state", folder);
        if ((file = fopen(path, "w"))) {
            fputs("FROZEN", file);
            fclose(file);
        }
    }
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;)
        pause();
}

static json_int_t count(const char *key)
{
    int fd = open(sim_path("/run/gpu-sandbox/fault-lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0)
        flock(fd, LOCK_EX);
    json_t *counters = sim_small_file(COUNTERS);
    if (!counters)
        counters = json_object();
    json_int_t value = sim_int(counters, key, 0) + 1;
    json_object_set_new(counters, key, json_integer(value));
    json_dump_file(counters, sim_path(COUNTERS), JSON_COMPACT);
    json_decref(counters);
    if (fd >= 0)
        close(fd);
    return value;
}

bool sim_fault(const char *call, int gpu, nvmlReturn_t *result)
{
    json_t *list = fault_list(), *fault;
    size_t index;
    bool hit = false;
    if (!list)
        return false;
    json_array_foreach(list, index, fault)
    {
        const char *pattern = sim_string(fault, "call"), *only = sim_string(fault, "gpu");
        char key[32];
        if (!pattern || fnmatch(pattern, call, FNM_EXTMATCH) != 0 || (only && gpu != sim_gpu_by_pci(only)))
            continue;
        snprintf(key, sizeof key, "%zu", index);
        json_int_t seen = count(key), nth = sim_int(fault, "nth", 1);
        json_t *times = json_object_get(fault, "times");
        bool always = json_is_string(times);
        json_int_t until = always ? 0 : nth + sim_int(fault, "times", 1);
        if (hit || seen < nth || (!always && seen >= until))
            continue;
        if (json_is_true(json_object_get(fault, "hang")))
            hang();
        *result = sim_error_by_name(sim_string(fault, "error"));
        hit = true;
    }
    json_decref(list);
    return hit;
}

void sim_latency(void)
{
    json_t *file = sim_small_file("/run/gpu-sandbox/latency.json");
    json_int_t micros = sim_int(file, "microseconds", 0);
    json_decref(file);
    if (micros > 0) {
        struct timespec wait = {micros / 1000000, (long)(micros % 1000000) * 1000};
        nanosleep(&wait, NULL);
    }
}
