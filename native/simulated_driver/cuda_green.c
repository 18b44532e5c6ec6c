/* Green contexts: contexts like all others, which hold on to the primary one. Their share of the
 * multiprocessors changes nothing here. */
#include <stdlib.h>
#include <string.h>

#include "cuda_work.h"

static CUresult describe(CUdevResource *resource, CUdevice device, int type)
{
    if (resource == NULL || type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(resource, 0, sizeof *resource);
    resource->type = type;
    resource->sm.smCount = card_of(device)->model->multiprocessors;
    resource->sm.minSmPartitionSize = resource->sm.smCoscheduledAlignment = 2;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, int type)
{
    CUresult result = driver_enter();
    return result != CUDA_SUCCESS ? result : driver_leave(describe(resource, device, type));
}

/* There is nothing to remember. */
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources,
                                   unsigned int count)
{
    static char described;
    if (description == NULL || resources == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *description = (CUdevResourceDesc)(void *)&described;
    return CUDA_SUCCESS;
}

static CUresult create(CUgreenCtx *green, CUdevice device)
{
    CUcontext made = calloc(1, sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct CUctx_st){.device = device, .card = driver.cards[device], .green = true};
    CUresult result = primary_retain(device);
    if (result == CUDA_SUCCESS && (result = context_begin(made)) != CUDA_SUCCESS)
        primary_release(device);
    if (result == CUDA_SUCCESS)
        *green = (CUgreenCtx)(void *)made;
    else
        free(made);
    return result;
}

CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc resources, CUdevice device,
                          unsigned int flags)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (green == NULL || resources == NULL || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    return driver_leave(is_device(device) ? create(green, device) : CUDA_ERROR_INVALID_DEVICE);
}

/* Takes the lock and finds the context behind the handle. */
static CUresult enter_green(CUgreenCtx green, CUcontext *context)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    *context = (CUcontext)(void *)green;
    return context_lives(*context) && (*context)->green ? CUDA_SUCCESS
                                                        : driver_leave(CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    CUcontext context;
    CUresult result = enter_green(green, &context);
    if (result != CUDA_SUCCESS)
        return result;
    CUdevice device = context->device;
    if (!context_destroy(context))
        return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
    primary_release(device);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
    CUcontext found;
    CUresult result = enter_green(green, &found);
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *context = found;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource, int type)
{
    CUcontext context;
    CUresult result = enter_green(green, &context);
    return result != CUDA_SUCCESS ? result
                                  : driver_leave(describe(resource, context->device, type));
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
                                int priority)
{
    CUcontext context;
    CUresult result = enter_green(green, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream == NULL || flags != CU_STREAM_NON_BLOCKING)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *stream = stream_make(context, flags, priority);
    return driver_leave(*stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}
