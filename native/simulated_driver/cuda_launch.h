/* How long a launch takes. */
#ifndef CASABA_CUDA_LAUNCH_H
#define CASABA_CUDA_LAUNCH_H

#include "cuda_work.h"

enum { THREADS_PER_BLOCK_MAX = 1024 };

struct CUfunc_st {
    CUfunction next;
    CUmodule module;
    uint64_t work_ns;
    bool from_argument; /* the first argument is the time */
    char name[];
};

/* Reads a kernel's time off its name: `spin` takes the nanoseconds of its first argument (64 bits),
 * `spin_<N>ns`, `spin_<N>us` and `spin_<N>ms` always N, all others what cards.conf says. */
void function_time(CUfunction function);

/* The time of one launch with these arguments. */
uint64_t launch_work_ns(CUfunction function, void **params, void **extra);

CUcontext function_context(CUfunction function);

/* The context may be NULL: any. */
CUresult launch_check(const CUlaunchConfig *config, CUfunction function, CUcontext context);

#endif
