/* Modules and launches. Any image is a module and has every function; kernels take no time. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_driver.h"

enum { THREADS_PER_BLOCK_MAX = 1024 };

struct CUfunc_st {
    CUfunction next;
    CUmodule module;
    char name[];
};

struct CUmod_st {
    struct resource resource;
    CUfunction functions;
};

static CUresult enter_module(CUmodule module)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (module == NULL || module->resource.kind != RESOURCE_MODULE)
        return driver_leave(CUDA_ERROR_INVALID_HANDLE);
    return CUDA_SUCCESS;
}

void module_destroy(struct resource *resource)
{
    CUmodule module = (CUmodule)resource;
    while (module->functions != NULL) {
        CUfunction function = module->functions;
        module->functions = function->next;
        free(function);
    }
    resource_remove(resource);
    free(module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    CUcontext context;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (module == NULL || image == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    CUmodule made = calloc(1, sizeof *made);
    if (made == NULL)
        return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
    resource_add(&made->resource, context, RESOURCE_MODULE);
    *module = made;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    if (path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return access(path, R_OK) == 0 ? cuModuleLoadData(module, path) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult cuModuleUnload(CUmodule module)
{
    CUresult result = enter_module(module);
    if (result != CUDA_SUCCESS)
        return result;
    module_destroy(&module->resource);
    return driver_leave(CUDA_SUCCESS);
}

static CUfunction function_of(CUmodule module, const char *name)
{
    for (CUfunction function = module->functions; function != NULL; function = function->next)
        if (strcmp(function->name, name) == 0)
            return function;
    size_t size = strlen(name) + 1;
    CUfunction made = malloc(sizeof *made + size);
    if (made == NULL)
        return NULL;
    made->next = module->functions;
    made->module = module;
    memcpy(made->name, name, size);
    module->functions = made;
    return made;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = enter_module(module);
    if (result != CUDA_SUCCESS)
        return result;
    if (function == NULL || name == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (name[0] == '\0')
        return driver_leave(CUDA_ERROR_NOT_FOUND);
    *function = function_of(module, name);
    return driver_leave(*function == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

static CUresult check_launch(const CUlaunchConfig *config, CUfunction function)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (function == NULL || function->module->resource.context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    unsigned long long threads =
        (unsigned long long)config->blockDimX * config->blockDimY * config->blockDimZ;
    if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimZ == 0 || threads == 0 ||
        threads > THREADS_PER_BLOCK_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    return stream_check(config->hStream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra)
{
    (void)params;
    (void)extra;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    return driver_leave(config == NULL ? CUDA_ERROR_INVALID_VALUE
                                       : check_launch(config, function));
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params,
                               void **extra)
{
    return cuLaunchKernelEx(config, function, params, extra);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **params, void **extra)
{
    const CUlaunchConfig config = {.gridDimX = grid_x, .gridDimY = grid_y, .gridDimZ = grid_z,
                                   .blockDimX = block_x, .blockDimY = block_y,
                                   .blockDimZ = block_z, .sharedMemBytes = shared_bytes,
                                   .hStream = stream};
    return cuLaunchKernelEx(&config, function, params, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                             void **params, void **extra)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                          shared_bytes, stream, params, extra);
}
