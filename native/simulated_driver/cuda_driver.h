/* The inside of libcuda: one process's view of the cards.
 *
 * One lock guards everything of the process. Functions that take a `struct driver` are called with
 * it held; the API functions take it with driver_enter(). */
#ifndef CASABA_CUDA_DRIVER_H
#define CASABA_CUDA_DRIVER_H

#include <stdbool.h>

#include "card_account.h"
#include "cuda_api.h"
#include "cuda_wider_api.h"

/* Exactly the names of cuda_exports.def leave the library. */
#define EXPORT(base, version, symbol) \
    extern __typeof__(symbol) symbol __attribute__((visibility("default")));
#define TWIN EXPORT
#include "cuda_exports.def"
#undef EXPORT
#undef TWIN

enum { CONTEXT_STACK_DEPTH = 64 };

enum resource_kind { RESOURCE_BLOCK, RESOURCE_STREAM, RESOURCE_EVENT, RESOURCE_MODULE,
                     RESOURCE_ARRAY, RESOURCE_MIPMAP };

/* What goes away with its context. First member of every kind's struct. */
struct resource {
    struct resource *next, *previous;
    CUcontext context;
    enum resource_kind kind;
};

struct CUctx_st {
    CUcontext next; /* in driver.contexts, while it lives */
    CUdevice device;
    unsigned card;
    unsigned flags;
    unsigned retained; /* of a primary context */
    bool primary, green;
    unsigned attached; /* of cuCtxCreate's contexts: uses that cuCtxDetach gives back */
    CUstream default_streams[2]; /* legacy, per thread (one for all threads) */
    uint64_t last_ns, blocking_ns; /* positions: of all streams, of all but non-blocking ones */
    uint64_t passed_ns;            /* known to be done */
    struct resource *resources;
};

struct driver {
    pthread_mutex_t lock;
    struct host host;
    struct account account;
    CUdevice device_count;
    unsigned cards[CARDS_MAX]; /* card of each device */
    struct CUctx_st primary[CARDS_MAX];
    CUcontext contexts; /* living ones */
    /* Trees of address ranges, see cuda_ranges.h. */
    void *blocks;      /* device memory */
    void *host_blocks; /* page-locked host memory */
    void *reserved;    /* addresses without memory */
    void *mapped;      /* memory of cuMemCreate at reserved addresses */
    void *handles;     /* memory of cuMemCreate, by handle */
    unsigned long long launches, allocations; /* ever, for the faults of cards.conf */
};

extern struct driver driver;

/* Takes the lock. An error, without the lock, when the driver is not initialised here: never, or
 * only in the parent that forked this process. */
CUresult driver_enter(void);
CUresult driver_leave(CUresult result); /* gives the lock back, returns `result` */

/* The faults of cards.conf: whether this allocation is one that is refused, and whether the process
 * has met its XID. */
bool fault_refuses_allocation(void);
static inline bool fault_has_failed(void)
{
    return driver.host.fails_after_launches != 0 &&
           driver.launches >= driver.host.fails_after_launches;
}

static inline bool is_device(CUdevice device)
{
    return device >= 0 && device < driver.device_count;
}

static inline const struct card *card_of(CUdevice device)
{
    return &driver.host.cards[driver.cards[device]];
}

/* The calling thread's current context. */
CUresult context_current(CUcontext *context);
bool context_lives(CUcontext context);

/* One use more, or less, of a device's primary context; the first use begins it. */
CUresult primary_retain(CUdevice device);
void primary_release(CUdevice device);

/* Waits for a context's work and ends it. False when another thread did. */
bool context_destroy(CUcontext context);

/* Starts and ends a context's life: its own memory is charged and, at the end, all that it holds is
 * freed. */
CUresult context_begin(CUcontext context);
void context_end(CUcontext context);

void resource_add(struct resource *resource, CUcontext context, enum resource_kind kind);
void resource_remove(struct resource *resource);

/* Frees what a context leaves behind: one per kind. */
void block_destroy(struct resource *resource);
void stream_destroy(struct resource *resource);
void event_destroy(struct resource *resource);
void module_destroy(struct resource *resource);
void array_destroy(struct resource *resource);
void mipmap_destroy(struct resource *resource);

#endif
