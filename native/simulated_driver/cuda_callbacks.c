/* Functions of the program that are called when the card gets there. The work behind them does not
 * wait for their return; every call that waits for a later position does. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "cuda_capture.h"
#include "cuda_work.h"

/* Weak: for old glibc it lies in libpthread.so.0, which a program without threads does not load.
 * There callbacks run in the calls that wait for them. */
extern __typeof__(pthread_create) pthread_create __attribute__((weak));

enum { POLL_NS = 50000 };

struct callback {
    struct callback *next;
    unsigned card;
    uint64_t position_ns;
    void (*run)(void *first, void *second);
    void *first, *second;
    bool running;
};

static struct callback *callbacks; /* in the order of their making */
static bool has_thread;

static void remove_callback(struct callback *callback)
{
    struct callback **link = &callbacks;
    while (*link != callback)
        link = &(*link)->next;
    *link = callback->next;
    free(callback);
}

/* Runs the oldest one that is due, without the lock. One at a time. */
static bool run_next(void)
{
    struct callback *callback = callbacks;
    if (callback == NULL || callback->running ||
        !position_is_done(callback->card, callback->position_ns))
        return false;
    callback->running = true;
    driver_leave(CUDA_SUCCESS);
    callback->run(callback->first, callback->second);
    pthread_mutex_lock(&driver.lock);
    remove_callback(callback);
    return true;
}

static void pause_without_lock(void)
{
    driver_leave(CUDA_SUCCESS);
    nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    pthread_mutex_lock(&driver.lock);
}

/* Ends when nothing is left to run; the next callback starts another. */
static void *run_all(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&driver.lock);
    while (callbacks != NULL)
        if (!run_next())
            pause_without_lock();
    has_thread = false;
    driver_leave(CUDA_SUCCESS);
    return NULL;
}

static void start_thread(void)
{
    pthread_t thread;
    pthread_attr_t detached;
    if (has_thread || pthread_create == NULL || pthread_attr_init(&detached) != 0)
        return;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    has_thread = pthread_create(&thread, &detached, run_all, NULL) == 0;
    pthread_attr_destroy(&detached);
}

CUresult callback_queue(CUstream stream, void (*run)(void *first, void *second), void *first,
                        void *second)
{
    struct callback *made = malloc(sizeof *made), **link = &callbacks;
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct callback){.card = stream->resource.context->card,
                              .position_ns = stream_position(stream),
                              .run = run, .first = first, .second = second};
    while (*link != NULL)
        link = &(*link)->next;
    *link = made;
    start_thread();
    return CUDA_SUCCESS;
}

static bool waits_before(unsigned card, uint64_t position_ns)
{
    for (const struct callback *callback = callbacks; callback != NULL; callback = callback->next)
        if (callback->card == card && callback->position_ns <= position_ns)
            return true;
    return false;
}

void callbacks_wait(unsigned card, uint64_t position_ns)
{
    while (waits_before(card, position_ns))
        if (has_thread || !run_next())
            pause_without_lock();
}

static void run_host_function(void *function, void *argument)
{
    ((CUhostFn)(uintptr_t)function)(argument);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (function == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    void *run = (void *)(uintptr_t)function;
    return driver_leave(stream->capture != NULL
                            ? capture_host_function(stream, function, argument)
                            : callback_queue(stream, run_host_function, run, argument));
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *argument)
{
    return cuLaunchHostFunc(per_thread(stream), function, argument);
}

struct stream_callback {
    CUstream stream;
    CUstreamCallback function;
};

static void run_stream_callback(void *callback, void *argument)
{
    const struct stream_callback wanted = *(struct stream_callback *)callback;
    free(callback);
    wanted.function(wanted.stream, CUDA_SUCCESS, argument);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *argument,
                             unsigned int flags)
{
    CUstream handle = stream;
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (function == NULL || flags != 0)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = capture_check(stream);
    struct stream_callback *callback = result == CUDA_SUCCESS ? malloc(sizeof *callback) : NULL;
    if (callback == NULL)
        return driver_leave(result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result);
    *callback = (struct stream_callback){handle, function};
    result = callback_queue(stream, run_stream_callback, callback, argument);
    if (result != CUDA_SUCCESS)
        free(callback);
    return driver_leave(result);
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function, void *argument,
                                  unsigned int flags)
{
    return cuStreamAddCallback(per_thread(stream), function, argument, flags);
}
