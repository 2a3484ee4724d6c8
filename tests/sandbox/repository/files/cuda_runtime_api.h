/* Stand-in for the header of CUDA @RELEASE@. */
#ifndef CUDA_RUNTIME_API_H
#define CUDA_RUNTIME_API_H
#define CUDART_VERSION @CUDART_NUMBER@
int cudaRuntimeGetVersion(int *version);
#endif
