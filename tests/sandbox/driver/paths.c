/* Where the simulated machine's files are. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *sim_path(const char *path)
{
#ifdef SIM_TEST_BUILD
    static char buffers[4][512];
    static int next;
    const char *root = getenv("GPU_SANDBOX_ROOT");
    char *buffer = buffers[next++ & 3];
    snprintf(buffer, sizeof buffers[0], "%s%s", root ? root : "", path);
    return buffer;
#else
    return path;
#endif
}

unsigned int sim_uid(void)
{
#ifdef SIM_TEST_BUILD
    const char *uid = getenv("GPU_SANDBOX_UID");
    if (uid)
        return (unsigned int)atoi(uid);
#endif
    return geteuid();
}
