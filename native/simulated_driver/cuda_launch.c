/* Launches. Nothing is computed: a kernel takes time. */
#include "cuda_launch.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_capture.h"

static uint64_t unit_ns(const char *unit)
{
    if (strcmp(unit, "ns") == 0)
        return 1;
    if (strcmp(unit, "us") == 0)
        return 1000;
    return strcmp(unit, "ms") == 0 ? 1000000 : 0;
}

void function_time(CUfunction function)
{
    static const char prefix[] = "spin_";
    char *unit;
    function->from_argument = strcmp(function->name, "spin") == 0;
    function->work_ns = driver.host.kernel_ns;
    if (strncmp(function->name, prefix, sizeof prefix - 1) != 0)
        return;
    unsigned long long number = strtoull(function->name + sizeof prefix - 1, &unit, 10);
    if (unit_ns(unit) != 0)
        function->work_ns = number * unit_ns(unit);
}

/* `extra` is the other form of the arguments: a buffer with all of them. */
static const void *first_argument(void **params, void **extra)
{
    const void *buffer = NULL;
    size_t size = 0;
    if (params != NULL)
        return params[0];
    if (extra == NULL)
        return NULL;
    for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *(size_t *)extra[1];
    }
    return size >= sizeof(uint64_t) ? buffer : NULL;
}

uint64_t launch_work_ns(CUfunction function, void **params, void **extra)
{
    uint64_t work_ns = function->work_ns;
    if (!function->from_argument)
        return work_ns;
    const void *argument = first_argument(params, extra);
    if (argument != NULL)
        memcpy(&work_ns, argument, sizeof work_ns);
    return work_ns;
}

static bool shape_is_allowed(const CUlaunchConfig *config)
{
    unsigned long long threads =
        (unsigned long long)config->blockDimX * config->blockDimY * config->blockDimZ;
    return config->gridDimX != 0 && config->gridDimY != 0 && config->gridDimZ != 0 &&
           threads != 0 && threads <= THREADS_PER_BLOCK_MAX;
}

CUresult launch_check(const CUlaunchConfig *config, CUfunction function, CUcontext context)
{
    if (function == NULL || (context != NULL && function_context(function) != context))
        return CUDA_ERROR_INVALID_HANDLE;
    return shape_is_allowed(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult launch(const CUlaunchConfig *config, CUfunction function, void **params,
                       void **extra)
{
    CUcontext context;
    CUstream stream = config->hStream;
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = context_current(&context);
    if (result == CUDA_SUCCESS)
        result = launch_check(config, function, context);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    if (stream->capture != NULL)
        return driver_leave(capture_kernel(stream, config, function, params, extra));
    return driver_leave(stream_submit(stream, launch_work_ns(function, params, extra)));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra)
{
    return config == NULL ? CUDA_ERROR_INVALID_VALUE : launch(config, function, params, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params,
                               void **extra)
{
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUlaunchConfig own = *config;
    own.hStream = per_thread(config->hStream);
    return launch(&own, function, params, extra);
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
    return launch(&config, function, params, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                             void **params, void **extra)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                          shared_bytes, per_thread(stream), params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x,
                                   unsigned int block_y, unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream, void **params)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                          shared_bytes, stream, params, NULL);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x,
                                        unsigned int grid_y, unsigned int grid_z,
                                        unsigned int block_x, unsigned int block_y,
                                        unsigned int block_z, unsigned int shared_bytes,
                                        CUstream stream, void **params)
{
    return cuLaunchKernel_ptsz(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                               shared_bytes, stream, params, NULL);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launches, unsigned int count,
                                              unsigned int flags)
{
    (void)flags;
    CUresult result = launches == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        const CUDA_LAUNCH_PARAMS *one = &launches[i];
        result = cuCtxPushCurrent_v2(one->function == NULL ? NULL
                                                           : function_context(one->function));
        if (result != CUDA_SUCCESS)
            return result;
        result = cuLaunchKernel(one->function, one->gridDimX, one->gridDimY, one->gridDimZ,
                                one->blockDimX, one->blockDimY, one->blockDimZ,
                                one->sharedMemBytes, one->hStream, one->kernelParams, NULL);
        cuCtxPopCurrent_v2(NULL);
    }
    return result;
}

/* Before CUDA 4: arguments and shape are kept with the function; one thread a block here. */
CUresult cuLaunchGridAsync(CUfunction function, int grid_width, int grid_height, CUstream stream)
{
    if (grid_width <= 0 || grid_height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return cuLaunchKernel(function, (unsigned)grid_width, (unsigned)grid_height, 1, 1, 1, 1, 0,
                          stream, NULL, NULL);
}

CUresult cuLaunchGrid(CUfunction function, int grid_width, int grid_height)
{
    return cuLaunchGridAsync(function, grid_width, grid_height, NULL);
}

CUresult cuLaunch(CUfunction function)
{
    return cuLaunchGrid(function, 1, 1);
}
