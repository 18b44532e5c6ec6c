/* The least that a hook with a shared budget can do: one locked addition, then the driver. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>

#include "cuda_api.h"

static atomic_ullong credit;
static cuLaunchKernel_fn *real;

__attribute__((constructor)) static void find(void) {
    *(void **)&real = dlsym(RTLD_NEXT, "cuLaunchKernel");
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **params, void **extra) {
    atomic_fetch_add_explicit(&credit, 1, memory_order_relaxed);
    return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                params, extra);
}
