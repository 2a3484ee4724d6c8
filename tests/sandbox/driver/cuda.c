/* A stub of libcuda: enough to be found and asked for its version. */
#define EXPORT __attribute__((visibility("default")))
enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_NO_DEVICE = 100 };

EXPORT int cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NO_DEVICE; }

EXPORT int cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION_OF_DRIVER;
    return CUDA_SUCCESS;
}

EXPORT int cuDeviceGetCount(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = 0;
    return CUDA_ERROR_NO_DEVICE;
}
