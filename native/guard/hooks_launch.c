/* Every way to start work on a card. The fast path is a jump to the driver; what has to wait or be
 * measured goes through a function of its own, out of line. */
#include "drivers.h"
#include "graph_memory.h"
#include "keep_errno.h"
#include "metering.h"

#define PER_THREAD ((CUstream)(uintptr_t)2) /* CU_STREAM_PER_THREAD */
#define APART __attribute__((noinline))
#define COLD __attribute__((noinline, cold))

/* A call with the caller's own arguments is a jump; clang must be told so. */
#ifdef __clang__
#define JUMP __attribute__((musttail)) return
#else
#define JUMP return
#endif

static CUstream legacy(CUstream stream) { return stream; }
static CUstream per_thread(CUstream stream) { return stream ? stream : PER_THREAD; }

static inline uint64_t blocks(uint64_t x, uint64_t y, uint64_t z) { return x * y * z; }

/* How the driver is called: straight, or with memory for a graph's memory nodes. */
#define STRAIGHT(real, arguments) real arguments
#define BACKED(real, arguments) graph_memory_launch(real, exec, stream)

#define LAUNCH(name, parameters, arguments, launched, size, stream) \
    LAUNCH_BY(STRAIGHT, name, parameters, arguments, launched, size, stream)

/* The hook NAME with its parameters, and how a launch is told from them: what is launched, how many
 * blocks, in which stream. */
#define LAUNCH_BY(how, name, parameters, arguments, launched, size, stream)                 \
    static _Atomic(__typeof__(&name)) known_##name;                                         \
    static COLD CUresult held_##name parameters {                                           \
        KEEP_ERRNO;                                                                         \
        struct ticket ticket;                                                               \
        REAL_CUDA(name);                                                                    \
        atomic_store_explicit(&known_##name, real, memory_order_relaxed);                   \
        metering_begin(&ticket, launched, size, stream);                                    \
        CUresult result = how(real, arguments);                                             \
        metering_end(&ticket, result);                                                      \
        return result;                                                                      \
    }                                                                                       \
    static APART CUresult metered_##name parameters {                                       \
        __typeof__(&name) real = atomic_load_explicit(&known_##name, memory_order_relaxed); \
        if (__builtin_expect(real && metering_takes_credit(launched, size), 1))             \
            return how(real, arguments);                                                    \
        JUMP held_##name arguments;                                                         \
    }                                                                                       \
    EXPORTED CUresult name parameters {                                                     \
        __typeof__(&name) real = atomic_load_explicit(&known_##name, memory_order_relaxed); \
        if (__builtin_expect(real && metering_is_open(), 1)) return how(real, arguments);   \
        JUMP metered_##name arguments;                                                      \
    }

#define GRID_PARAMETERS                                                                       \
    CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,       \
        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int bytes, \
        CUstream stream, void **params
#define GRID_ARGUMENTS \
    function, grid_x, grid_y, grid_z, block_x, block_y, block_z, bytes, stream, params
#define GRID_BLOCKS blocks(grid_x, grid_y, grid_z)

LAUNCH(cuLaunchKernel, (GRID_PARAMETERS, void **extra), (GRID_ARGUMENTS, extra), function,
       GRID_BLOCKS, legacy(stream))
LAUNCH(cuLaunchKernel_ptsz, (GRID_PARAMETERS, void **extra), (GRID_ARGUMENTS, extra), function,
       GRID_BLOCKS, per_thread(stream))
LAUNCH(cuLaunchCooperativeKernel, (GRID_PARAMETERS), (GRID_ARGUMENTS), function, GRID_BLOCKS,
       legacy(stream))
LAUNCH(cuLaunchCooperativeKernel_ptsz, (GRID_PARAMETERS), (GRID_ARGUMENTS), function,
       GRID_BLOCKS, per_thread(stream))

static inline uint64_t config_blocks(const CUlaunchConfig *config) {
    return config ? blocks(config->gridDimX, config->gridDimY, config->gridDimZ) : 0;
}

static inline CUstream config_stream(const CUlaunchConfig *config) {
    return config ? config->hStream : NULL;
}

LAUNCH(cuLaunchKernelEx,
       (const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
       (config, function, params, extra), function, config_blocks(config),
       legacy(config_stream(config)))
LAUNCH(cuLaunchKernelEx_ptsz,
       (const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
       (config, function, params, extra), function, config_blocks(config),
       per_thread(config_stream(config)))

LAUNCH(cuLaunch, (CUfunction function), (function), function, 1, NULL)
LAUNCH(cuLaunchGrid, (CUfunction function, int width, int height), (function, width, height),
       function, blocks((unsigned int)width, (unsigned int)height, 1), NULL)
LAUNCH(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),
       (function, width, height, stream), function,
       blocks((unsigned int)width, (unsigned int)height, 1), legacy(stream))

/* A graph is one unit: its nodes run without any call in between. */
LAUNCH_BY(BACKED, cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream), exec, 0,
          legacy(stream))
LAUNCH_BY(BACKED, cuGraphLaunch_ptsz, (CUgraphExec exec, CUstream stream), (exec, stream), exec, 0,
          per_thread(stream))

/* On several cards at once: held back and measured as a launch of its first part, since the parts
 * start together. */
static inline const void *first_function(const CUDA_LAUNCH_PARAMS *launches, unsigned int count) {
    return launches && count ? launches[0].function : NULL;
}

static inline uint64_t first_blocks(const CUDA_LAUNCH_PARAMS *launches, unsigned int count) {
    return launches && count
               ? blocks(launches[0].gridDimX, launches[0].gridDimY, launches[0].gridDimZ)
               : 0;
}

static inline CUstream first_stream(const CUDA_LAUNCH_PARAMS *launches, unsigned int count) {
    return launches && count ? launches[0].hStream : NULL;
}

LAUNCH(cuLaunchCooperativeKernelMultiDevice,
       (CUDA_LAUNCH_PARAMS * launches, unsigned int count, unsigned int flags),
       (launches, count, flags), first_function(launches, count), first_blocks(launches, count),
       legacy(first_stream(launches, count)))
