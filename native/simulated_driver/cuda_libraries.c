/* Libraries: modules under another name. A library belongs to the context in which it was loaded,
 * and a kernel is a function of it. */
#include "cuda_driver.h"

static CUmodule module_of(CUlibrary library)
{
    return (CUmodule)(void *)library;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit_options,
                           void **jit_values, unsigned int jit_count, int *options, void **values,
                           unsigned int count)
{
    (void)jit_options;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)values;
    (void)count;
    CUmodule module;
    CUresult result = cuModuleLoadData(library == NULL ? NULL : &module, code);
    if (result == CUDA_SUCCESS)
        *library = (CUlibrary)(void *)module;
    return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit_options,
                               void **jit_values, unsigned int jit_count, int *options,
                               void **values, unsigned int count)
{
    (void)jit_options;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)values;
    (void)count;
    CUmodule module;
    CUresult result = cuModuleLoad(library == NULL ? NULL : &module, path);
    if (result == CUDA_SUCCESS)
        *library = (CUlibrary)(void *)module;
    return result;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return cuModuleUnload(module_of(library));
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    if (module == NULL || library == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *module = module_of(library);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUfunction *kernel, CUlibrary library, const char *name)
{
    return cuModuleGetFunction(kernel, module_of(library), name);
}

CUresult cuKernelGetFunction(CUfunction *function, CUfunction kernel)
{
    if (function == NULL || kernel == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *function = kernel;
    return CUDA_SUCCESS;
}
