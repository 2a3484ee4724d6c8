/* A stub of libcuda: enough to be found and asked for its version, and for Triton's Python backend, which looks up
   cuPointerGetAttribute, cuGetErrorString and cuDevicePrimaryCtxGetState as soon as the library exists. */
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

/* Memory that CUDA has not allocated is an invalid value, and here that is all memory. */
EXPORT int cuPointerGetAttribute(void *data, int attribute, unsigned long long pointer)
{
    (void)data, (void)attribute, (void)pointer;
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active)
{
    (void)device;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = 0;
    *active = 0;
    return CUDA_ERROR_NO_DEVICE;
}

EXPORT int cuGetErrorString(int error, const char **text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    switch (error) {
    case CUDA_SUCCESS: *text = "no error"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE: *text = "invalid argument"; return CUDA_SUCCESS;
    case CUDA_ERROR_NO_DEVICE: *text = "no CUDA-capable device is detected"; return CUDA_SUCCESS;
    default: *text = 0; return CUDA_ERROR_INVALID_VALUE;
    }
}
