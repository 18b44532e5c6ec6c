#define _GNU_SOURCE
#include "doors.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct doors cuda;

#ifdef DOOR_LINKED
void doors_open(void)
{
#define LINK(symbol, base, version) cuda.symbol = symbol;
    SAMPLE_FUNCTIONS(LINK)
}
#else

static void *driver_library(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "the CUDA driver cannot be loaded: %s\n", dlerror());
        exit(2);
    }
    return library;
}

static void keep(void *function, void *address, const char *name)
{
    if (address == NULL) {
        fprintf(stderr, "the CUDA driver has no %s\n", name);
        exit(2);
    }
    memcpy(function, &address, sizeof address);
}

#ifdef DOOR_DLSYM
void doors_open(void)
{
    void *library = driver_library();
#define FIND(symbol, base, version) keep(&cuda.symbol, dlsym(library, #symbol), #symbol);
    SAMPLE_FUNCTIONS(FIND)
}
#else
static void *ask(cuGetProcAddress_v2_fn *lookup, const char *base, int version)
{
    void *address = NULL;
    CUdriverProcAddressQueryResult status;
    return lookup(base, &address, version, 0, &status) == CUDA_SUCCESS ? address : NULL;
}

void doors_open(void)
{
    cuGetProcAddress_v2_fn *lookup;
    keep(&lookup, dlsym(driver_library(), "cuGetProcAddress_v2"), "cuGetProcAddress_v2");
#define ASK(symbol, base, version) keep(&cuda.symbol, ask(lookup, #base, version), #base);
    SAMPLE_FUNCTIONS(ASK)
}
#endif
#endif

const char *result_name(CUresult result)
{
    const char *name = NULL;
    return cuda.cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : "an unknown error";
}

void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, result_name(result));
    exit(1);
}

void doors_open_device(int device)
{
    CUcontext context;
    doors_open();
    must(cuda.cuInit(0), "cuInit");
    must(cuda.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}
