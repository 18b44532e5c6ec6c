/* Allocates and frees blocks of random size for argv[1] milliseconds, with argv[2] threads; blocks
 * are argv[3] bytes at most. Prints how many allocations were granted and refused. Any other
 * answer of the driver ends it with 1. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cuda_api.h"

enum { BLOCKS = 64, MAX_THREADS = 16 };

static atomic_ulong granted, refused, failed;
static unsigned long long largest;
static long end_ms;
static CUcontext context;

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static CUresult allocate(CUdeviceptr *block, unsigned int *seed) {
    size_t bytes = (rand_r(seed) % 1000 + 1) * (largest / 1000), pitch;
    switch (rand_r(seed) % 3) {
    case 0: return cuMemAllocManaged(block, bytes, CU_MEM_ATTACH_GLOBAL);
    case 1: return cuMemAllocPitch_v2(block, &pitch, 512, bytes / 512 + 1, 4);
    default: return cuMemAlloc_v2(block, bytes);
    }
}

static void *race(void *argument) {
    unsigned int seed = (unsigned int)getpid() * 31 + (unsigned int)(size_t)argument;
    CUdeviceptr blocks[BLOCKS] = {0};
    if (cuCtxSetCurrent(context)) failed++;
    while (now_ms() < end_ms) {
        int i = rand_r(&seed) % BLOCKS;
        if (blocks[i]) {
            if (cuMemFree_v2(blocks[i])) failed++;
            blocks[i] = 0;
            continue;
        }
        CUresult result = allocate(&blocks[i], &seed);
        if (result == CUDA_SUCCESS)
            granted++;
        else if (result == CUDA_ERROR_OUT_OF_MEMORY)
            refused++;
        else
            failed++;
        if (result) blocks[i] = 0;
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i] && cuMemFree_v2(blocks[i])) failed++;
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    pthread_t threads[MAX_THREADS];
    int thread_count = atoi(arguments[2]);
    largest = strtoull(arguments[3], NULL, 10);
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 3;
    end_ms = now_ms() + atol(arguments[1]);
    for (int i = 0; i < thread_count; i++)
        pthread_create(&threads[i], NULL, race, (void *)(size_t)i);
    for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
    if (cuCtxDestroy_v2(context)) failed++;
    printf("%lu %lu\n", granted, refused);
    return failed != 0;
}
