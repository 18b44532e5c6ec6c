/* What the guard adds to memory calls. Runs under the guard with the driver as usual, and calls the
 * same functions of a copy of the driver, which the guard does not know, in turn with them.
 *
 * usage: memory_costs COPY_OF_THE_DRIVER
 * Prints "NAME NANOSECONDS" lines: floor is one locked atomic add in a hook that only passes on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_api.h"

enum { ROUNDS = 400, CALLS = 64, FLOOR_CALLS = 4096, LIVE = 10000, BLOCK = 4096 };

#define FUNCTIONS(F)    \
    F(cuInit)           \
    F(cuCtxCreate_v2)   \
    F(cuMemAlloc_v2)    \
    F(cuMemFree_v2)     \
    F(cuMemGetInfo_v2)

struct driver {
#define MEMBER(name) name##_fn *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

static void must(int result, const char *what) {
    if (result == 0) return;
    fprintf(stderr, "%s: %d\n", what, result);
    exit(1);
}

static void find(void *library, const char *name, void *function) {
    void *address = dlsym(library, name);
    must(address == NULL, name);
    memcpy(function, &address, sizeof address);
}

static struct driver start(const char *path) {
    struct driver driver;
    CUcontext context;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    must(library == NULL, path);
#define FIND(name) find(library, #name, &driver.name);
    FUNCTIONS(FIND)
#undef FIND
    must(driver.cuInit(0), "cuInit");
    must(driver.cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    return driver;
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The median of what one call of `hooked` takes more than one of `bare`, measured in turn. */
static double added_ns(void (*work)(const void *), const void *hooked, const void *bare,
                       int calls) {
    static double differences[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        const void *first = round % 2 ? hooked : bare, *second = round % 2 ? bare : hooked;
        double begin = now_ns();
        work(first);
        double middle = now_ns();
        work(second);
        double difference = (now_ns() - middle) - (middle - begin);
        differences[round] = (round % 2 ? -difference : difference) / calls;
    }
    qsort(differences, ROUNDS, sizeof differences[0], compare);
    return differences[ROUNDS / 2];
}

static void alloc_pairs(const void *argument) {
    const struct driver *driver = argument;
    for (int i = 0; i < CALLS; i++) {
        CUdeviceptr pointer;
        must(driver->cuMemAlloc_v2(&pointer, BLOCK), "cuMemAlloc");
        must(driver->cuMemFree_v2(pointer), "cuMemFree");
    }
}

static void mem_infos(const void *argument) {
    const struct driver *driver = argument;
    for (int i = 0; i < CALLS; i++) {
        size_t left, total;
        must(driver->cuMemGetInfo_v2(&left, &total), "cuMemGetInfo");
    }
}

typedef int function(int);
static atomic_ulong counter;

static __attribute__((noinline)) int bare_function(int argument) {
    __asm__ volatile("");
    return argument;
}

static function *volatile passed_on_to = bare_function;

static __attribute__((noinline)) int hooked_function(int argument) {
    atomic_fetch_add(&counter, 1);
    return passed_on_to(argument);
}

static void calls_of_function(const void *argument) {
    function *const *called = argument;
    for (int i = 0; i < FLOOR_CALLS; i++) must((*called)(0), "function");
}

static void hold_blocks(const struct driver *driver) {
    for (int i = 0; i < LIVE; i++) {
        CUdeviceptr pointer;
        must(driver->cuMemAlloc_v2(&pointer, BLOCK), "cuMemAlloc");
    }
}

int main(int count, char **arguments) {
    function *const hooked = hooked_function, *const bare = bare_function;
    if (count != 2) {
        fprintf(stderr, "usage: %s COPY_OF_THE_DRIVER\n", arguments[0]);
        return 2;
    }
    struct driver guarded = start("libcuda.so.1"), copy = start(arguments[1]);
    printf("floor %.2f\n", added_ns(calls_of_function, &hooked, &bare, FLOOR_CALLS));
    printf("alloc_pair %.1f\n", added_ns(alloc_pairs, &guarded, &copy, CALLS));
    printf("meminfo %.1f\n", added_ns(mem_infos, &guarded, &copy, CALLS));
    hold_blocks(&guarded);
    hold_blocks(&copy);
    printf("alloc_pair_live %.1f\n", added_ns(alloc_pairs, &guarded, &copy, CALLS));
    return 0;
}
