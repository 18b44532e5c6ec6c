/* Streams and events. Work takes no time, so a stream is always done and an event is the moment at
 * which it was recorded. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "cuda_driver.h"

enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2 };

struct CUstream_st {
    struct resource resource;
    unsigned flags;
};

struct CUevent_st {
    struct resource resource;
    unsigned flags;
    int64_t recorded_ns; /* 0: never */
};

CUresult stream_check(CUstream stream)
{
    if (stream == NULL || (uintptr_t)stream == STREAM_LEGACY ||
        (uintptr_t)stream == STREAM_PER_THREAD)
        return CUDA_SUCCESS;
    return stream->resource.kind == RESOURCE_STREAM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult event_check(CUevent event)
{
    return event != NULL && event->resource.kind == RESOURCE_EVENT ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_INVALID_HANDLE;
}

void stream_destroy(struct resource *resource)
{
    resource_remove(resource);
    free(resource);
}

void event_destroy(struct resource *resource)
{
    resource_remove(resource);
    free(resource);
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    CUcontext context;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (stream == NULL || flags > CU_STREAM_NON_BLOCKING)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    CUstream made = calloc(1, sizeof *made);
    if (made == NULL)
        return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
    resource_add(&made->resource, context, RESOURCE_STREAM);
    made->flags = flags;
    *stream = made;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    (void)priority;
    return cuStreamCreate(stream, flags);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if ((uintptr_t)stream <= STREAM_PER_THREAD || stream_check(stream) != CUDA_SUCCESS)
        return driver_leave(CUDA_ERROR_INVALID_HANDLE);
    stream_destroy(&stream->resource);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamDestroy(CUstream stream)
{
    return cuStreamDestroy_v2(stream);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    CUcontext context;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    result = stream_check(stream);
    if (result == CUDA_SUCCESS && (uintptr_t)stream <= STREAM_PER_THREAD)
        result = context_current(&context);
    return driver_leave(result);
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    return cuStreamSynchronize(stream);
}

CUresult cuStreamQuery(CUstream stream)
{
    return cuStreamSynchronize(stream);
}

CUresult cuStreamQuery_ptsz(CUstream stream)
{
    return cuStreamSynchronize(stream);
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    CUcontext context;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (event == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    CUevent made = calloc(1, sizeof *made);
    if (made == NULL)
        return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
    resource_add(&made->resource, context, RESOURCE_EVENT);
    made->flags = flags;
    *event = made;
    return driver_leave(CUDA_SUCCESS);
}

static CUresult enter_event(CUevent event)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    result = event_check(event);
    return result == CUDA_SUCCESS ? result : driver_leave(result);
}

CUresult cuEventDestroy_v2(CUevent event)
{
    CUresult result = enter_event(event);
    if (result != CUDA_SUCCESS)
        return result;
    event_destroy(&event->resource);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuEventDestroy(CUevent event)
{
    return cuEventDestroy_v2(event);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    struct timespec now;
    CUresult result = enter_event(event);
    if (result != CUDA_SUCCESS)
        return result;
    result = stream_check(stream);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (result == CUDA_SUCCESS)
        event->recorded_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    return driver_leave(result);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    return cuEventRecord(event, stream);
}

CUresult cuEventSynchronize(CUevent event)
{
    CUresult result = enter_event(event);
    return result != CUDA_SUCCESS ? result : driver_leave(CUDA_SUCCESS);
}

CUresult cuEventQuery(CUevent event)
{
    return cuEventSynchronize(event);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUresult result = enter_event(start);
    if (result != CUDA_SUCCESS)
        return result;
    result = event_check(end);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    if (milliseconds == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (start->recorded_ns == 0 || end->recorded_ns == 0 ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return driver_leave(CUDA_ERROR_INVALID_HANDLE);
    *milliseconds = (float)(end->recorded_ns - start->recorded_ns) / 1e6f;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime(milliseconds, start, end);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    (void)flags;
    CUresult result = enter_event(event);
    return result != CUDA_SUCCESS ? result : driver_leave(stream_check(stream));
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
    return cuStreamWaitEvent(stream, event, flags);
}
