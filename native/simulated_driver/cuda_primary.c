/* Primary contexts: one a device, shared by all that retain it. */
#include "cuda_driver.h"

/* Takes the lock and finds the device's primary context. */
static CUresult enter_primary(CUdevice device, CUcontext *primary)
{
    *primary = NULL;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return driver_leave(CUDA_ERROR_INVALID_DEVICE);
    *primary = &driver.primary[device];
    return CUDA_SUCCESS;
}

CUresult primary_retain(CUdevice device)
{
    CUcontext primary = &driver.primary[device];
    CUresult result = primary->retained == 0 ? context_begin(primary) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        primary->retained++;
    return result;
}

void primary_release(CUdevice device)
{
    CUcontext primary = &driver.primary[device];
    if (primary->retained > 0 && --primary->retained == 0)
        context_end(primary);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUcontext primary;
    CUresult result = enter_primary(device, &primary);
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = primary_retain(device);
    if (result == CUDA_SUCCESS)
        *context = primary;
    return driver_leave(result);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUcontext primary;
    CUresult result = enter_primary(device, &primary);
    if (result != CUDA_SUCCESS)
        return result;
    if (primary->retained == 0)
        return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
    primary_release(device);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUcontext primary;
    CUresult result = enter_primary(device, &primary);
    if (result != CUDA_SUCCESS)
        return result;
    if (primary->retained > 0)
        context_end(primary);
    primary->retained = 0;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    CUcontext primary;
    CUresult result = enter_primary(device, &primary);
    if (result != CUDA_SUCCESS)
        return result;
    primary->flags = flags;
    return driver_leave(CUDA_SUCCESS);
}

/* Before CUDA 11 flags were fixed once the context was active. */
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    CUcontext primary;
    CUresult result = enter_primary(device, &primary);
    if (result != CUDA_SUCCESS)
        return result;
    if (primary->retained > 0)
        return driver_leave(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
    primary->flags = flags;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    CUcontext primary;
    CUresult result = enter_primary(device, &primary);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL || active == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *flags = primary->flags;
    *active = primary->retained > 0;
    return driver_leave(CUDA_SUCCESS);
}
