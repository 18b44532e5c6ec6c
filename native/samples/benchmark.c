/* A stand-in for a training benchmark: takes a working set that grows with the batch size, then for
 * each batch prepares the input on the host, launches kernels and waits for them. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "doors.h"

enum { MIB_PER_SAMPLE = 64, LAUNCHES_PER_BATCH = 64, BLOCKS = 256, THREADS = 256, REPORT_S = 5 };

static const char usage[] =
    "usage: %s [--num_batches=100] [--batch_size=8] [--input_us=0]\n"
    "  --batch_size  samples a batch; 64 MiB of the card each\n"
    "  --input_us    time that the host takes to prepare the input of one batch\n";

static const struct option options[] = {
    {"num_batches", required_argument, NULL, 'n'},
    {"batch_size", required_argument, NULL, 'b'},
    {"input_us", required_argument, NULL, 'i'},
    {NULL, 0, NULL, 0},
};

/* Each thread computes for `rounds` and stores the outcome. A virtual card takes the kernel's time
 * from its name. */
static const char kernel[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry spin_200us(.param .u64 out, .param .u32 rounds)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %r<4>;\n"
    "    .reg .b64 %d<2>;\n"
    "    ld.param.u64 %d0, [out];\n"
    "    cvta.to.global.u64 %d1, %d0;\n"
    "    ld.param.u32 %r0, [rounds];\n"
    "    mov.u32 %r1, %tid.x;\n"
    "LOOP:\n"
    "    mad.lo.u32 %r1, %r1, 1664525, %r0;\n"
    "    sub.u32 %r0, %r0, 1;\n"
    "    setp.gt.s32 %p, %r0, 0;\n"
    "    @%p bra LOOP;\n"
    "    st.global.u32 [%d1], %r1;\n"
    "    ret;\n"
    "}\n";

struct work {
    CUdeviceptr memory;
    CUfunction function;
    CUstream stream;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void start(struct work *work, size_t bytes)
{
    CUmodule module;
    doors_open_device(0);
    must(cuda.cuMemAlloc_v2(&work->memory, bytes), "allocating the working set");
    must(cuda.cuMemsetD8_v2(work->memory, 0, bytes), "cuMemsetD8");
    must(cuda.cuModuleLoadData(&module, kernel), "cuModuleLoadData");
    must(cuda.cuModuleGetFunction(&work->function, module, "spin_200us"), "cuModuleGetFunction");
    must(cuda.cuStreamCreate(&work->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static void run_batch(struct work *work, unsigned long input_us)
{
    unsigned rounds = 20000;
    void *parameters[] = {&work->memory, &rounds};
    const struct timespec input = {(time_t)(input_us / 1000000), (long)(input_us % 1000000) * 1000};
    nanosleep(&input, NULL);
    for (int i = 0; i < LAUNCHES_PER_BATCH; i++)
        must(cuda.cuLaunchKernel(work->function, BLOCKS, 1, 1, THREADS, 1, 1, 0, work->stream,
                                 parameters, NULL),
             "cuLaunchKernel");
    must(cuda.cuStreamSynchronize(work->stream), "cuStreamSynchronize");
}

static void run(struct work *work, unsigned long batches, unsigned long batch_size,
                unsigned long input_us)
{
    double reported_s = now_s();
    unsigned long reported = 0;
    for (unsigned long batch = 1; batch <= batches; batch++) {
        run_batch(work, input_us);
        double elapsed_s = now_s() - reported_s;
        if (elapsed_s < REPORT_S && batch < batches)
            continue;
        printf("batch %lu: %.1f samples/s\n", batch,
               (double)((batch - reported) * batch_size) / elapsed_s);
        fflush(stdout);
        reported = batch;
        reported_s += elapsed_s;
    }
}

int main(int count, char **arguments)
{
    unsigned long batches = 100, batch_size = 8, input_us = 0;
    int option;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        unsigned long value = optarg == NULL ? 0 : strtoul(optarg, NULL, 10);
        if (option == 'n')
            batches = value;
        else if (option == 'b')
            batch_size = value;
        else if (option == 'i')
            input_us = value;
        if (option == '?' || batches == 0 || batch_size == 0) {
            fprintf(stderr, usage, arguments[0]);
            return 2;
        }
    }
    struct work work;
    start(&work, batch_size * MIB_PER_SAMPLE * MIB);
    printf("working set: %lu MiB, %lu batches of %lu\n", batch_size * MIB_PER_SAMPLE, batches,
           batch_size);
    fflush(stdout);
    run(&work, batches, batch_size, input_us);
    return 0;
}
