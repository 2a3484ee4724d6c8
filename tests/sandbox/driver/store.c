/* The state of the simulated machine: JSON files, shared by all processes under one lock. */
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HARDWARE "/etc/gpu-sandbox/hardware.json"
#define INFOROM "/var/lib/gpu-sandbox/inforom.json"
#define STATE "/run/gpu-sandbox/driver.json"
#define MODULES "/run/gpu-sandbox/modules.json"
#define LOCK "/run/gpu-sandbox/lock"

struct cached {
    const char *path;
    json_t *root;
    struct stat seen;
    bool valid;
};

static json_t *hardware;
static struct cached state = {.path = STATE}, inforom = {.path = INFOROM}, modules = {.path = MODULES};
static int lock_fd = -1;
static bool inforom_dirty, commit_failed;

static bool unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static json_t *refresh(struct cached *file)
{
    struct stat now;
    if (stat(sim_path(file->path), &now) != 0)
        memset(&now, 0, sizeof now);
    if (file->valid && unchanged(&now, &file->seen))
        return file->root;
    json_decref(file->root);
    file->root = now.st_ino ? json_load_file(sim_path(file->path), 0, NULL) : NULL;
    if (!json_is_object(file->root)) {
        json_decref(file->root);
        file->root = json_object();
    }
    file->seen = now;
    file->valid = true;
    return file->root;
}

static bool save(struct cached *file)
{
    char target[512], temporary[560];
    snprintf(target, sizeof target, "%s", sim_path(file->path));
    snprintf(temporary, sizeof temporary, "%s.%d", target, (int)getpid());
    if (json_dump_file(file->root, temporary, JSON_COMPACT | JSON_SORT_KEYS) != 0 || chmod(temporary, 0644) != 0 ||
        rename(temporary, target) != 0) {
        unlink(temporary);
        file->valid = false;
        return false;
    }
    return stat(target, &file->seen) == 0;
}

bool sim_store_open(void)
{
    if (!hardware)
        hardware = json_load_file(sim_path(HARDWARE), 0, NULL);
    return json_is_object(hardware);
}

json_t *sim_hardware(void) { return hardware; }

json_t *sim_small_file(const char *path) { return json_load_file(sim_path(path), 0, NULL); }

bool sim_lock(enum sim_access access)
{
    if (lock_fd < 0) {
        lock_fd = open(sim_path(LOCK), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (lock_fd < 0)
            lock_fd = open(sim_path(LOCK), O_RDONLY | O_CLOEXEC);
    }
    if (lock_fd < 0 || flock(lock_fd, access == SIM_MUTATE ? LOCK_EX : LOCK_SH) != 0)
        return false;
    refresh(&modules);
    refresh(&state);
    refresh(&inforom);
    return true;
}

void sim_unlock(bool commit)
{
    commit_failed = false;
    if (commit) {
        if (inforom_dirty && !save(&inforom))
            commit_failed = true;
        if (!save(&state))
            commit_failed = true;
    } else if (inforom_dirty) {
        inforom.valid = false;
    }
    inforom_dirty = false;
    flock(lock_fd, LOCK_UN);
}

bool sim_commit_failed(void) { return commit_failed; }

json_t *sim_modules(void) { return modules.root; }

const char *sim_loaded_version(void)
{
    return sim_string(json_object_get(modules.root, "nvidia"), "version");
}

json_t *sim_driver_state(void) { return state.root; }

json_int_t sim_next_serial(void)
{
    json_int_t serial = sim_int(state.root, "serial", 0) + 1;
    json_object_set_new(state.root, "serial", json_integer(serial));
    return serial;
}

static json_t *child(json_t *parent, const char *key)
{
    json_t *value = json_object_get(parent, key);
    if (!value) {
        value = json_object();
        json_object_set_new(parent, key, value);
    }
    return value;
}

json_t *sim_inforom(int gpu) { return child(inforom.root, sim_gpu_string(gpu, "uuid")); }

void sim_inforom_changed(void) { inforom_dirty = true; }

/* The first use after a load of the module: what InfoROM kept becomes current. */
json_t *sim_gpu_state(int gpu)
{
    json_t *gpus = child(state.root, "gpus");
    json_t *entry = json_object_get(gpus, sim_gpu_string(gpu, "pci_address"));
    if (entry)
        return entry;
    entry = child(gpus, sim_gpu_string(gpu, "pci_address"));
    json_t *kept = sim_inforom(gpu);
    json_int_t mode = sim_is_ampere(gpu) ? sim_int(kept, "mig_mode", 0) : 0;
    json_object_set_new(entry, "mig_current", json_integer(mode));
    json_object_set_new(entry, "mig_pending", json_integer(mode));
    json_object_set_new(entry, "ecc_current", json_integer(sim_int(kept, "ecc_pending", 1)));
    json_object_set_new(entry, "instances", json_array());
    return entry;
}
