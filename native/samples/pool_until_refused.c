/* Takes device memory from the default pool in equal chunks, in the order of a stream, until the
 * driver refuses one; shows each total. Exit code 0 when the refusal is for lack of memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_api.h"

enum { MIB = 1 << 20 };

static const char usage[] = "usage: %s [--chunk-mib=64]\n";

#define FUNCTIONS(F)                                                             \
    F(cuInit) F(cuGetErrorName) F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent)   \
    F(cuStreamCreate) F(cuMemAllocAsync) F(cuStreamSynchronize)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
} cuda;

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name)                                                           \
    {                                                                        \
        void *address = library == NULL ? NULL : dlsym(library, #name);      \
        if (address == NULL) {                                               \
            fprintf(stderr, "libcuda.so.1 or its " #name " is not there\n"); \
            exit(2);                                                         \
        }                                                                    \
        memcpy(&cuda.name, &address, sizeof address);                        \
    }
    FUNCTIONS(FIND)
}

static const char *name_of(CUresult result)
{
    const char *name = NULL;
    return cuda.cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : "an unknown error";
}

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, name_of(result));
    exit(1);
}

static CUresult take(size_t bytes, CUstream stream)
{
    CUdeviceptr pointer;
    CUresult result = cuda.cuMemAllocAsync(&pointer, bytes, stream);
    return result == CUDA_SUCCESS ? cuda.cuStreamSynchronize(stream) : result;
}

int main(int count, char **arguments)
{
    static const struct option options[] = {
        {"chunk-mib", required_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};
    size_t chunk_mib = 64, total_mib = 0;
    CUcontext context;
    CUstream stream;
    int option;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        chunk_mib = option == 'c' ? strtoul(optarg, NULL, 10) : 0;
        if (chunk_mib == 0) {
            fprintf(stderr, usage, arguments[0]);
            return 2;
        }
    }
    open_driver();
    must(cuda.cuInit(0), "cuInit");
    must(cuda.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    CUresult result;
    for (; (result = take(chunk_mib * MIB, stream)) == CUDA_SUCCESS; total_mib += chunk_mib)
        printf("%zu MiB allocated\n", total_mib + chunk_mib);
    printf("%zu MiB refused: %s\n", total_mib + chunk_mib, name_of(result));
    return result == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 1;
}
