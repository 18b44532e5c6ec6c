/* Prints the nanoseconds that one launch takes: the median of several rounds. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda_api.h"

enum { ROUNDS = 15, LAUNCHES = 1000000 };

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double round_ns(CUfunction function) {
    double began_ns = now_ns();
    for (int i = 0; i < LAUNCHES; i++)
        if (cuLaunchKernel(function, 64, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS)
            exit(1);
    return (now_ns() - began_ns) / LAUNCHES;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    static int function;
    double rounds[ROUNDS];
    if (cuInit(0) != CUDA_SUCCESS) return 1;
    for (int i = 0; i < ROUNDS; i++) rounds[i] = round_ns((CUfunction)&function);
    qsort(rounds, ROUNDS, sizeof rounds[0], compare);
    printf("%.3f\n", rounds[ROUNDS / 2]);
    return 0;
}
