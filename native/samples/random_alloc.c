/* Takes and gives back device memory at random, in every kind, from several threads, and checks that
 * what it wrote is still there. A refusal for lack of memory is counted; anything else ends it. */
#define _GNU_SOURCE
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "doors.h"
#include "memory_kinds.h"

enum { BLOCKS_MAX = 1024, THREADS_MAX = 64 };

static const char usage[] =
    "usage: %s [--seed=1] [--seconds=10] [--max-mib=256] [--blocks=32] [--threads=1] [--device=0]\n"
    "  --seconds=0  goes on for ever\n"
    "  --blocks     the most that one thread holds, up to 1024\n";

static const struct option options[] = {
    {"seed", required_argument, NULL, 's'},    {"seconds", required_argument, NULL, 't'},
    {"max-mib", required_argument, NULL, 'm'}, {"blocks", required_argument, NULL, 'b'},
    {"threads", required_argument, NULL, 'n'}, {"device", required_argument, NULL, 'd'},
    {NULL, 0, NULL, 0},
};

static struct {
    unsigned seed, seconds, max_mib, blocks, threads;
    int device;
    struct timespec end;
    _Atomic unsigned long taken, refused;
} run = {.seed = 1, .seconds = 10, .max_mib = 256, .blocks = 32, .threads = 1};

struct held {
    struct memory memory;
    unsigned mark; /* 0: nothing is held here */
};

static bool is_over(void)
{
    struct timespec now;
    if (run.seconds == 0)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > run.end.tv_sec ||
           (now.tv_sec == run.end.tv_sec && now.tv_nsec >= run.end.tv_nsec);
}

static void take(struct held *held, unsigned *random)
{
    enum memory_kind kind = (enum memory_kind)((unsigned)rand_r(random) % KIND_COUNT);
    size_t bytes = 4 + (size_t)rand_r(random) % ((size_t)run.max_mib * MIB);
    CUresult result = memory_take(&held->memory, kind, bytes, run.device);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        atomic_fetch_add(&run.refused, 1);
        return;
    }
    must(result, memory_kind_names[kind]);
    atomic_fetch_add(&run.taken, 1);
    held->mark = (unsigned)rand_r(random) | 1;
    must(cuda.cuMemcpyHtoD_v2(held->memory.pointer, &held->mark, sizeof held->mark), "writing");
}

static void give_back(struct held *held)
{
    unsigned mark = 0;
    must(cuda.cuMemcpyDtoH_v2(&mark, held->memory.pointer, sizeof mark), "reading");
    if (mark != held->mark) {
        fprintf(stderr, "%#x was written and %#x is there\n", held->mark, mark);
        exit(1);
    }
    must(memory_give_back(&held->memory), "giving back");
    held->mark = 0;
}

static void *work(void *argument)
{
    CUcontext context;
    struct held blocks[BLOCKS_MAX] = {0};
    unsigned random = run.seed + *(unsigned *)argument;
    must(cuda.cuDevicePrimaryCtxRetain(&context, run.device), "cuDevicePrimaryCtxRetain");
    must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    while (!is_over()) {
        struct held *held = &blocks[(unsigned)rand_r(&random) % run.blocks];
        if (held->mark == 0)
            take(held, &random);
        else
            give_back(held);
    }
    for (unsigned i = 0; i < run.blocks; i++)
        if (blocks[i].mark != 0)
            give_back(&blocks[i]);
    must(cuda.cuDevicePrimaryCtxRelease_v2(run.device), "cuDevicePrimaryCtxRelease");
    return NULL;
}

static bool read_options(int count, char **arguments)
{
    int option;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        unsigned value = optarg == NULL ? 0 : (unsigned)strtoul(optarg, NULL, 10);
        switch (option) {
        case 's': run.seed = value; break;
        case 't': run.seconds = value; break;
        case 'm': run.max_mib = value; break;
        case 'b': run.blocks = value; break;
        case 'n': run.threads = value; break;
        case 'd': run.device = (int)value; break;
        default: return false;
        }
    }
    return run.max_mib > 0 && run.blocks > 0 && run.blocks <= BLOCKS_MAX && run.threads > 0 &&
           run.threads <= THREADS_MAX;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS_MAX];
    unsigned numbers[THREADS_MAX];
    if (!read_options(count, arguments)) {
        fprintf(stderr, usage, arguments[0]);
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &run.end);
    run.end.tv_sec += run.seconds;
    doors_open_device(run.device);
    puts("started");
    fflush(stdout);
    for (unsigned i = 0; i < run.threads; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0) {
            perror("a thread cannot be started");
            return 1;
        }
    }
    for (unsigned i = 0; i < run.threads; i++)
        pthread_join(threads[i], NULL);
    printf("%lu allocations, %lu refusals\n", run.taken, run.refused);
    return 0;
}
