/* Gives the card work of every kind at random, from several threads, and checks what can be known:
 * times between events, results of questions, that called functions were called. */
#define _GNU_SOURCE
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda_wider_api.h"

enum { THREADS_MAX = 64, WORK_MAX_NS = 200000, BLOCK_MAX = 8 << 20 };

static const struct option options[] = {
    {"seed", required_argument, NULL, 's'},
    {"seconds", required_argument, NULL, 't'}, /* 0: for ever */
    {"threads", required_argument, NULL, 'n'},
    {NULL, 0, NULL, 0},
};

static struct {
    unsigned seed, seconds, threads;
    time_t end;
    CUcontext context;
    CUfunction spin;
    _Atomic unsigned long launches;
} run = {.seed = 1, .seconds = 2, .threads = 1};

struct worker {
    unsigned random;
    CUstream stream;
    CUevent start, end;
    _Atomic unsigned called;
};

#define MUST(call) must(call, #call)
static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %d\n", what, (int)result);
    exit(1);
}

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

static uint64_t launch(struct worker *worker)
{
    uint64_t work_ns = (uint64_t)rand_r(&worker->random) % WORK_MAX_NS;
    void *params[] = {&work_ns};
    MUST(cuLaunchKernel(run.spin, 1, 1, 1, 1, 1, 1, 0, worker->stream, params, NULL));
    atomic_fetch_add(&run.launches, 1);
    return work_ns;
}

static void time_launches(struct worker *worker)
{
    float milliseconds;
    uint64_t work_ns = 0;
    MUST(cuEventRecord(worker->start, worker->stream));
    for (int i = rand_r(&worker->random) % 8; i >= 0; i--)
        work_ns += launch(worker);
    MUST(cuEventRecord(worker->end, worker->stream));
    CUresult result = cuEventQuery(worker->end);
    check(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY, "cuEventQuery");
    MUST(cuEventSynchronize(worker->end));
    MUST(cuEventElapsedTime(&milliseconds, worker->start, worker->end));
    check((double)milliseconds * 1e6 >= (double)work_ns * 0.9999 - 10, "time between events");
}

static void note_call(void *worker)
{
    atomic_fetch_add(&((struct worker *)worker)->called, 1);
}

static void call_function(struct worker *worker)
{
    unsigned before = atomic_load(&worker->called);
    launch(worker);
    MUST(cuLaunchHostFunc(worker->stream, note_call, worker));
    MUST(cuStreamSynchronize(worker->stream));
    check(atomic_load(&worker->called) == before + 1, "calls of a function");
}

static void allocate(struct worker *worker)
{
    CUdeviceptr pointer;
    CUresult result = cuMemAllocAsync(&pointer, 1 + (size_t)rand_r(&worker->random) % BLOCK_MAX,
                                      worker->stream);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return;
    must(result, "cuMemAllocAsync");
    MUST(cuMemsetD8Async(pointer, 1, 1, worker->stream));
    launch(worker);
    MUST(cuMemFreeAsync(pointer, worker->stream));
}

static void run_graph(struct worker *worker)
{
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr pointer;
    MUST(cuStreamBeginCapture_v2(worker->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch(worker);
    MUST(cuMemAllocAsync(&pointer, BLOCK_MAX, worker->stream));
    launch(worker);
    MUST(cuMemFreeAsync(pointer, worker->stream));
    MUST(cuStreamEndCapture(worker->stream, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphDestroy(graph));
    for (int i = 0; i < 3; i++)
        MUST(cuGraphLaunch(exec, worker->stream));
    MUST(cuGraphExecDestroy(exec));
}

static void synchronize(struct worker *worker)
{
    MUST(cuStreamSynchronize(worker->stream));
    MUST(cuStreamQuery(worker->stream));
}

static void *work(void *argument)
{
    static void (*const kinds[])(struct worker *worker) = {time_launches, call_function, allocate,
                                                           run_graph, synchronize};
    struct worker *worker = argument;
    MUST(cuCtxSetCurrent(run.context));
    MUST(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&worker->start, 0));
    MUST(cuEventCreate(&worker->end, 0));
    while (run.seconds == 0 || time(NULL) < run.end)
        kinds[(unsigned)rand_r(&worker->random) % (sizeof kinds / sizeof kinds[0])](worker);
    MUST(cuEventDestroy_v2(worker->start));
    MUST(cuEventDestroy_v2(worker->end));
    MUST(cuStreamSynchronize(worker->stream));
    MUST(cuStreamDestroy_v2(worker->stream));
    return NULL;
}

static void read_options(int count, char **arguments)
{
    int option;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        unsigned value = optarg == NULL ? 0 : (unsigned)strtoul(optarg, NULL, 10);
        switch (option) {
        case 's': run.seed = value; break;
        case 't': run.seconds = value; break;
        case 'n': run.threads = value < THREADS_MAX ? value : THREADS_MAX; break;
        default: exit(2);
        }
    }
}

int main(int count, char **arguments)
{
    CUmodule module;
    pthread_t threads[THREADS_MAX];
    static struct worker workers[THREADS_MAX];
    read_options(count, arguments);
    run.end = time(NULL) + (time_t)run.seconds;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&run.context, 0));
    MUST(cuCtxSetCurrent(run.context));
    MUST(cuModuleLoadData(&module, "image"));
    MUST(cuModuleGetFunction(&run.spin, module, "spin"));
    for (unsigned i = 0; i < run.threads; i++) {
        workers[i].random = run.seed * 1000 + i;
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            return 1;
    }
    for (unsigned i = 0; i < run.threads; i++)
        pthread_join(threads[i], NULL);
    MUST(cuCtxSynchronize());
    MUST(cuModuleUnload(module));
    MUST(cuDevicePrimaryCtxRelease_v2(0));
    printf("%lu launches\n", run.launches);
    return 0;
}
