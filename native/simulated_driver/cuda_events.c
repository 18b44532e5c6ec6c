/* Events. One that is recorded behind work has the time at which the card passed its position,
 * which is exact however late it is asked for. */
#include <stdlib.h>

#include "cuda_capture.h"
#include "cuda_pools.h"
#include "cuda_work.h"

static CUevent pending; /* events whose time is still to be fetched */

static CUresult event_enter(CUevent event)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (event != NULL && event->resource.kind == RESOURCE_EVENT)
        return CUDA_SUCCESS;
    return driver_leave(CUDA_ERROR_INVALID_HANDLE);
}

static void forget(CUevent event)
{
    if (event->state != EVENT_PENDING)
        return;
    if (event->next != NULL)
        event->next->previous = event->previous;
    if (event->previous != NULL)
        event->previous->next = event->next;
    else
        pending = event->next;
    event->state = EVENT_NEW;
}

static void remember(CUevent event)
{
    event->state = EVENT_PENDING;
    event->previous = NULL;
    event->next = pending;
    if (pending != NULL)
        pending->previous = event;
    pending = event;
}

/* Fetches the time if it is known by now. */
static bool is_done(CUevent event)
{
    if (event->state != EVENT_PENDING)
        return true;
    uint64_t time_ns = queue_marked_ns(&driver.account, event->card, event->position_ns);
    if (time_ns == 0)
        return false;
    forget(event);
    event->state = EVENT_DONE;
    event->time_ns = time_ns;
    return true;
}

/* Fetches the times that are known, so that their marks can be overwritten. */
static void read_marks(unsigned card)
{
    uint64_t position_ns;
    uint64_t passed = queue_marks_passed(&driver.account, card, &position_ns);
    for (CUevent event = pending, next; event != NULL; event = next) {
        next = event->next;
        if (event->card == card && event->position_ns <= position_ns)
            is_done(event);
    }
    queue_marks_read(&driver.account, card, passed);
}

void event_destroy(struct resource *resource)
{
    CUevent event = (CUevent)resource;
    forget(event);
    capture_forget_event(event);
    resource_remove(resource);
    free(resource);
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
    made->card = context->card;
    *event = made;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuEventDestroy_v2(CUevent event)
{
    CUresult result = event_enter(event);
    if (result != CUDA_SUCCESS)
        return result;
    event_destroy(&event->resource);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuEventDestroy(CUevent event)
{
    return cuEventDestroy_v2(event);
}

static void mark(CUevent event)
{
    bool full;
    while (event->time_ns = queue_mark(&driver.account, event->card, event->position_ns, &full),
           full)
        read_marks(event->card);
    if (event->time_ns != 0)
        event->state = EVENT_DONE;
    else
        remember(event);
}

void event_record_at(CUevent event, unsigned card, uint64_t position_ns)
{
    forget(event);
    capture_forget_event(event);
    event->card = card;
    event->position_ns = position_ns;
    mark(event);
}

void event_record(CUevent event, CUstream stream)
{
    event_record_at(event, stream->resource.context->card, stream_position(stream));
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (event == NULL || event->resource.kind != RESOURCE_EVENT)
        return driver_leave(CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture != NULL)
        return driver_leave(capture_record(stream, event));
    event_record(event, stream);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    return cuEventRecord(event, per_thread(stream));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    (void)flags;
    return cuEventRecord(event, stream);
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags)
{
    return cuEventRecordWithFlags(event, per_thread(stream), flags);
}

CUresult cuEventSynchronize(CUevent event)
{
    CUresult result = event_enter(event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->capture != NULL)
        return driver_leave(CUDA_ERROR_CAPTURED_EVENT);
    if (event->state == EVENT_PENDING) {
        position_wait(event->card, event->position_ns);
        pools_trim();
    }
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuEventQuery(CUevent event)
{
    CUresult result = event_enter(event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->capture != NULL)
        return driver_leave(CUDA_ERROR_CAPTURED_EVENT);
    return driver_leave(is_done(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUresult result = event_enter(start);
    if (result != CUDA_SUCCESS)
        return result;
    if (end == NULL || end->resource.kind != RESOURCE_EVENT)
        return driver_leave(CUDA_ERROR_INVALID_HANDLE);
    if (milliseconds == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (start->state == EVENT_NEW || end->state == EVENT_NEW ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return driver_leave(CUDA_ERROR_INVALID_HANDLE);
    if (!is_done(start) || !is_done(end))
        return driver_leave(CUDA_ERROR_NOT_READY);
    *milliseconds = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime(milliseconds, start, end);
}

/* Work of one card is served in the order of its launches, so only the position matters. Between
 * cards there is no order here. */
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    (void)flags;
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (event == NULL || event->resource.kind != RESOURCE_EVENT)
        return driver_leave(CUDA_ERROR_INVALID_HANDLE);
    if (event->capture != NULL || stream->capture != NULL)
        return driver_leave(capture_wait(stream, event));
    if (event->state != EVENT_NEW && event->card == stream->resource.context->card)
        stream_wait(stream, event->position_ns);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
    return cuStreamWaitEvent(per_thread(stream), event, flags);
}
