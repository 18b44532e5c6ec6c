/* Modules. Any image is a module and has every function. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_launch.h"

enum { FUNCTION_MAX_THREADS = 0 }; /* CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */

struct CUmod_st {
    struct resource resource;
    CUfunction functions;
};

CUcontext function_context(CUfunction function)
{
    return function->module->resource.context;
}

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
    function_time(made);
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

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options,
                            void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return cuModuleLoadData(module, image);
}

/* Takes the lock for a question about a function. */
static CUresult enter_function(CUfunction function, const void *answer)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (function == NULL)
        return driver_leave(CUDA_ERROR_INVALID_HANDLE);
    return answer == NULL ? driver_leave(CUDA_ERROR_INVALID_VALUE) : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    CUresult result = enter_function(function, module);
    if (result != CUDA_SUCCESS)
        return result;
    *module = function->module;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    CUresult result = enter_function(function, name);
    if (result != CUDA_SUCCESS)
        return result;
    *name = function->name;
    return driver_leave(CUDA_SUCCESS);
}

/* A kernel that only takes time needs nothing but threads. */
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    CUresult result = enter_function(function, value);
    if (result != CUDA_SUCCESS)
        return result;
    *value = attribute == FUNCTION_MAX_THREADS ? THREADS_PER_BLOCK_MAX : 0;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    (void)attribute;
    (void)value;
    CUresult result = enter_function(function, function);
    return result == CUDA_SUCCESS ? driver_leave(result) : result;
}

CUresult cuFuncSetCacheConfig(CUfunction function, int config)
{
    return cuFuncSetAttribute(function, 0, config);
}

/* The shape and arguments of cuLaunch, which has one thread a block here and takes no time from
 * arguments. */
CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
    return x > 0 && y > 0 && z > 0 ? cuFuncSetAttribute(function, 0, 0) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuParamSetSize(CUfunction function, unsigned int bytes)
{
    (void)bytes;
    return cuFuncSetAttribute(function, 0, 0);
}

/* Nothing is there to be profiled. */
CUresult cuProfilerInitialize(const char *config, const char *output, int mode)
{
    (void)config;
    (void)output;
    (void)mode;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuProfilerStart(void)
{
    return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
    return CUDA_SUCCESS;
}
