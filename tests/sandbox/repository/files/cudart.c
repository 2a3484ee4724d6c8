/* Stand-in for the CUDA runtime: it knows its version and nothing else. */
int cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return 1;
    *version = CUDART_VERSION;
    return 0;
}
