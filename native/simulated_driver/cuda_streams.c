/* Streams: order and waiting. */
#define _GNU_SOURCE
#include "cuda_work.h"

#include <stdlib.h>
#include <time.h>

#include "cuda_capture.h"
#include "cuda_pools.h"

/* Below, a wait burns the processor, as a real one does: sleeping would be too coarse. */
enum { SPIN_NS = 200000, SLEEP_SLACK_NS = 100000 };

static bool is_stream(CUstream stream)
{
    return stream->resource.kind == RESOURCE_STREAM;
}

static CUresult find(CUstream *stream)
{
    CUcontext context;
    if ((uintptr_t)*stream > STREAM_PER_THREAD)
        return is_stream(*stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    CUresult result = context_current(&context);
    if (result == CUDA_SUCCESS)
        *stream = context->default_streams[(uintptr_t)*stream == STREAM_PER_THREAD];
    return result;
}

CUresult stream_enter(CUstream *stream)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    result = fault_has_failed() ? CUDA_ERROR_LAUNCH_FAILED : find(stream);
    return result == CUDA_SUCCESS ? result : driver_leave(result);
}

void stream_destroy(struct resource *resource)
{
    capture_forget((CUstream)resource);
    resource_remove(resource);
    free(resource);
}

CUstream stream_make(CUcontext context, unsigned flags, int priority)
{
    static unsigned long long last_id;
    CUstream made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    resource_add(&made->resource, context, RESOURCE_STREAM);
    made->flags = flags;
    made->priority = priority;
    made->id = ++last_id;
    return made;
}

bool streams_begin(CUcontext context)
{
    for (unsigned i = 0; i < 2; i++)
        if ((context->default_streams[i] = stream_make(context, CU_STREAM_DEFAULT, 0)) == NULL)
            return false;
    context->default_streams[0]->legacy = true;
    return true;
}

static uint64_t later(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

uint64_t stream_position(CUstream stream)
{
    const struct CUctx_st *context = stream->resource.context;
    if (stream->legacy)
        return later(stream->last_ns, context->blocking_ns);
    if (stream->flags & CU_STREAM_NON_BLOCKING)
        return stream->last_ns;
    return later(stream->last_ns, context->default_streams[0]->last_ns);
}

void stream_wait(CUstream stream, uint64_t position_ns)
{
    CUcontext context = stream->resource.context;
    stream->last_ns = later(stream->last_ns, position_ns);
    context->last_ns = later(context->last_ns, position_ns);
    if (!(stream->flags & CU_STREAM_NON_BLOCKING))
        context->blocking_ns = later(context->blocking_ns, position_ns);
}

CUresult stream_submit(CUstream stream, uint64_t work_ns)
{
    CUcontext context = stream->resource.context;
    CUresult result = stream->legacy ? capture_check(stream) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    uint64_t *oldest_ns = &stream->launched_ns[stream->launches % LAUNCHES_MAX];
    if (stream->launches >= LAUNCHES_MAX && *oldest_ns > context->passed_ns) {
        uint64_t position_ns = *oldest_ns;
        position_wait(context->card, position_ns);
        if (!context_lives(context))
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        context->passed_ns = position_ns;
        oldest_ns = &stream->launched_ns[stream->launches % LAUNCHES_MAX];
    }
    uint64_t position_ns = queue_submit(&driver.account, context->card, work_ns);
    *oldest_ns = position_ns;
    stream->launches++;
    driver.launches++;
    stream_wait(stream, position_ns);
    return CUDA_SUCCESS;
}

bool position_is_done(unsigned card, uint64_t position_ns)
{
    return queue_left_ns(&driver.account, card, position_ns) == 0;
}

static void pass_time(uint64_t left_ns)
{
    uint64_t until_ns = clock_ns() + left_ns;
    if (left_ns > SPIN_NS) {
        until_ns -= SLEEP_SLACK_NS;
        const struct timespec end = {.tv_sec = (time_t)(until_ns / UINT64_C(1000000000)),
                                     .tv_nsec = (long)(until_ns % UINT64_C(1000000000))};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
        return;
    }
    while (clock_ns() < until_ns)
        continue;
}

void position_wait(unsigned card, uint64_t position_ns)
{
    uint64_t left_ns;
    while ((left_ns = queue_left_ns(&driver.account, card, position_ns)) > 0) {
        driver_leave(CUDA_SUCCESS);
        pass_time(left_ns);
        pthread_mutex_lock(&driver.lock);
    }
    callbacks_wait(card, position_ns);
}

static CUresult create(CUstream *stream, unsigned flags, int priority)
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
    *stream = stream_make(context, flags, priority);
    return driver_leave(*stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return create(stream, flags, 0);
}

/* Priorities are kept, and change nothing. */
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    return create(stream, flags, priority);
}

/* Its work goes on. */
CUresult cuStreamDestroy_v2(CUstream stream)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if ((uintptr_t)stream <= STREAM_PER_THREAD || !is_stream(stream))
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
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_check(stream);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    CUcontext context = stream->resource.context;
    position_wait(context->card, stream_position(stream));
    pools_trim();
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    return cuStreamSynchronize(per_thread(stream));
}

CUresult cuStreamQuery(CUstream stream)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_check(stream);
    if (result == CUDA_SUCCESS &&
        !position_is_done(stream->resource.context->card, stream_position(stream)))
        result = CUDA_ERROR_NOT_READY;
    return driver_leave(result);
}

CUresult cuStreamQuery_ptsz(CUstream stream)
{
    return cuStreamQuery(per_thread(stream));
}

#define STREAM_ANSWER(name, type, expression)                    \
    CUresult name(CUstream stream, type *answer)                 \
    {                                                            \
        CUresult result = stream_enter(&stream);                 \
        if (result != CUDA_SUCCESS)                              \
            return result;                                       \
        if (answer == NULL)                                      \
            return driver_leave(CUDA_ERROR_INVALID_VALUE);       \
        *answer = (expression);                                  \
        return driver_leave(CUDA_SUCCESS);                       \
    }                                                            \
    CUresult name##_ptsz(CUstream stream, type *answer)          \
    {                                                            \
        return name(per_thread(stream), answer);                 \
    }

STREAM_ANSWER(cuStreamGetCtx, CUcontext, stream->resource.context)
STREAM_ANSWER(cuStreamGetFlags, unsigned int, stream->flags)
STREAM_ANSWER(cuStreamGetPriority, int, stream->priority)
STREAM_ANSWER(cuStreamGetId, unsigned long long, stream->id)

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return CUDA_SUCCESS;
}
