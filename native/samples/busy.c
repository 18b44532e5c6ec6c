/* Keeps the card as busy as it is allowed to, for a while: one launch after the other, graphs,
 * waiting for each launch, a new graph each time, or beside a capture that is never ended. Kernels
 * are chosen in turn from a list of times; on a virtual card a kernel named spin_<time> takes that
 * time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_api.h"

CUDA_API(cuGraphDestroy, CUgraph graph)

enum { KERNELS_MAX = 16, GRAPH_KERNELS = 8, GRAPH_US = 10000, AHEAD_US = 20000, BATCH_MAX = 512,
       THREADS_MAX = 64 };

static const char usage[] =
    "usage: %s [--mode=async|graph|sync|capture|beside] [--kernels=200us[,10ms…]] [--seconds=5]\n"
    "       [--threads=1]\n"
    "  --threads  each with a stream of its own\n";

static const struct option options[] = {
    {"mode", required_argument, NULL, 'm'},
    {"kernels", required_argument, NULL, 'k'},
    {"seconds", required_argument, NULL, 's'},
    {"threads", required_argument, NULL, 't'},
    {NULL, 0, NULL, 0},
};

#define FUNCTIONS(F)                                                                           \
    F(cuInit) F(cuGetErrorName) F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent)                 \
    F(cuModuleLoadData) F(cuModuleGetFunction) F(cuLaunchKernel) F(cuStreamCreate)             \
    F(cuStreamSynchronize) F(cuEventCreate) F(cuEventRecord) F(cuEventSynchronize)             \
    F(cuStreamBeginCapture_v2) F(cuStreamEndCapture) F(cuGraphInstantiateWithFlags)            \
    F(cuGraphLaunch) F(cuGraphExecDestroy) F(cuGraphDestroy)

static struct {
#define MEMBER(name) name##_fn *name;
    FUNCTIONS(MEMBER)
} cuda;

struct work {
    const char *mode;
    double seconds;
    CUcontext context;
    CUmodule module;
    CUstream stream;
    CUfunction functions[KERNELS_MAX];
    unsigned long kernel_us[KERNELS_MAX]; /* rounded up */
    int count;
    CUgraphExec graph; /* NULL: single launches */
    int graph_kernels;
    unsigned long long launched;
};

#ifdef DOOR_LINKED
static void open_driver(void)
{
#define LINK(name) cuda.name = name;
    FUNCTIONS(LINK)
}
#else
static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name)                                                             \
    {                                                                          \
        void *address = library == NULL ? NULL : dlsym(library, #name);        \
        if (address == NULL) {                                                 \
            fprintf(stderr, "libcuda.so.1 or its " #name " is not there\n");   \
            exit(2);                                                           \
        }                                                                      \
        memcpy(&cuda.name, &address, sizeof address);                          \
    }
    FUNCTIONS(FIND)
}
#endif

static void must(CUresult result, const char *what)
{
    const char *name = "an unknown error";
    if (result == CUDA_SUCCESS)
        return;
    cuda.cuGetErrorName(result, &name);
    fprintf(stderr, "%s: %s\n", what, name);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void add_kernel(struct work *work, CUmodule module, const char *time)
{
    char name[64], *unit;
    unsigned long amount = strtoul(time, &unit, 10);
    if (work->count == KERNELS_MAX || amount == 0) {
        fprintf(stderr, "%s: not a time, or more than %d of them\n", time, KERNELS_MAX);
        exit(2);
    }
    snprintf(name, sizeof name, "spin_%s", time);
    must(cuda.cuModuleGetFunction(&work->functions[work->count], module, name), name);
    work->kernel_us[work->count++] = strcmp(unit, "ms") == 0   ? amount * 1000
                                     : strcmp(unit, "us") == 0 ? amount
                                                               : amount / 1000 + 1;
}

static void start(struct work *work, char *kernels)
{
    open_driver();
    must(cuda.cuInit(0), "cuInit");
    must(cuda.cuDevicePrimaryCtxRetain(&work->context, 0), "cuDevicePrimaryCtxRetain");
    must(cuda.cuCtxSetCurrent(work->context), "cuCtxSetCurrent");
    must(cuda.cuModuleLoadData(&work->module, "simulated"), "cuModuleLoadData");
    for (char *time = strtok(kernels, ","); time != NULL; time = strtok(NULL, ","))
        add_kernel(work, work->module, time);
}

static void launch_kernel(struct work *work)
{
    CUfunction function = work->functions[work->launched++ % (unsigned)work->count];
    must(cuda.cuLaunchKernel(function, 64, 1, 1, 256, 1, 1, 0, work->stream, NULL, NULL),
         "cuLaunchKernel");
}

static unsigned long mean_us(const struct work *work)
{
    unsigned long sum = 0;
    for (int i = 0; i < work->count; i++)
        sum += work->kernel_us[i];
    unsigned long mean = sum / (unsigned)work->count;
    return mean ? mean : 1;
}

/* Several kernels, but no more than GRAPH_US of them. */
static void make_graph(struct work *work)
{
    CUgraph graph;
    unsigned long fitting = GRAPH_US / mean_us(work);
    work->graph_kernels = fitting > GRAPH_KERNELS ? GRAPH_KERNELS : fitting ? (int)fitting : 1;
    must(cuda.cuStreamBeginCapture_v2(work->stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "capture");
    for (int i = 0; i < work->graph_kernels; i++)
        launch_kernel(work);
    must(cuda.cuStreamEndCapture(work->stream, &graph), "cuStreamEndCapture");
    must(cuda.cuGraphInstantiateWithFlags(&work->graph, graph, 0), "cuGraphInstantiate");
    must(cuda.cuGraphDestroy(graph), "cuGraphDestroy");
}

static void launch_once(struct work *work)
{
    if (work->graph == NULL) {
        launch_kernel(work);
    } else {
        must(cuda.cuGraphLaunch(work->graph, work->stream), "cuGraphLaunch");
        work->launched += (unsigned)work->graph_kernels;
    }
}

/* Launches of about AHEAD_US. */
static int batch_size(const struct work *work)
{
    unsigned long one = mean_us(work) * (unsigned long)(work->graph ? work->graph_kernels : 1);
    unsigned long size = AHEAD_US / one;
    return size > BATCH_MAX ? BATCH_MAX : size ? (int)size : 1;
}

/* The card always has the next batch while the one before it runs. */
static void run_ahead(struct work *work, double until_s)
{
    CUevent done[2];
    int size = batch_size(work);
    must(cuda.cuEventCreate(&done[0], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    must(cuda.cuEventCreate(&done[1], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    for (unsigned turn = 0; now_s() < until_s; turn++) {
        if (turn >= 2)
            must(cuda.cuEventSynchronize(done[turn % 2]), "cuEventSynchronize");
        for (int i = 0; i < size; i++)
            launch_once(work);
        must(cuda.cuEventRecord(done[turn % 2], work->stream), "cuEventRecord");
    }
}

static void run_in_step(struct work *work, double until_s)
{
    while (now_s() < until_s) {
        launch_once(work);
        must(cuda.cuStreamSynchronize(work->stream), "cuStreamSynchronize");
    }
}

static void run_new_graphs(struct work *work, double until_s)
{
    while (now_s() < until_s) {
        make_graph(work);
        launch_once(work);
        must(cuda.cuStreamSynchronize(work->stream), "cuStreamSynchronize");
        must(cuda.cuGraphExecDestroy(work->graph), "cuGraphExecDestroy");
    }
}

static void leave_capture_open(void)
{
    CUstream stream;
    must(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "capture");
}

static void *run(void *argument)
{
    struct work *work = argument;
    must(cuda.cuCtxSetCurrent(work->context), "cuCtxSetCurrent");
    must(cuda.cuStreamCreate(&work->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (strcmp(work->mode, "graph") == 0)
        make_graph(work);
    if (strcmp(work->mode, "beside") == 0)
        leave_capture_open();
    work->launched = 0;
    double until_s = now_s() + work->seconds;
    if (strcmp(work->mode, "sync") == 0)
        run_in_step(work, until_s);
    else if (strcmp(work->mode, "capture") == 0)
        run_new_graphs(work, until_s);
    else
        run_ahead(work, until_s);
    must(cuda.cuStreamSynchronize(work->stream), "cuStreamSynchronize");
    if (strcmp(work->mode, "graph") == 0)
        must(cuda.cuGraphExecDestroy(work->graph), "cuGraphExecDestroy");
    return NULL;
}

static unsigned long long run_all(const struct work *work, int threads)
{
    struct work works[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    unsigned long long launched = 0;
    for (int i = 0; i < threads; i++) {
        works[i] = *work;
        if (pthread_create(&ids[i], NULL, run, &works[i]) != 0) {
            fprintf(stderr, "thread %d of %d cannot be made\n", i + 1, threads);
            exit(1);
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        launched += works[i].launched;
    }
    return launched;
}

int main(int count, char **arguments)
{
    char kernels[256] = "200us";
    struct work work = {.mode = "async", .seconds = 5};
    int option, threads = 1;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        if (option == 'm')
            work.mode = optarg;
        else if (option == 'k')
            snprintf(kernels, sizeof kernels, "%s", optarg);
        else if (option == 's')
            work.seconds = atof(optarg);
        else if (option == 't')
            threads = atoi(optarg);
        if (option == '?' || threads < 1 || threads > THREADS_MAX) {
            fprintf(stderr, usage, arguments[0]);
            return 2;
        }
    }
    start(&work, kernels);
    printf("busy\n");
    fflush(stdout);
    printf("%llu launches\n", run_all(&work, threads));
    return 0;
}
