#include "pools.h"

#include <sched.h>
#include <stdlib.h>

#include "drivers.h"
#include "handles.h"
#include "lock.h"
#include "reservation.h"

enum { GROWTH = 2 << 20 /* bytes; what drivers let a pool grow by at least */ };

/* In between nobody knows what the pool has, and nobody may ask. */
enum life { LIVING, BEING_DESTROYED, DESTROYED };

struct pool {
    struct pool *next;
    CUmemoryPool handle;
    CUdevice device; /* of graphs' memory */
    const struct card *card;
    struct charge charge;
    uint64_t begun, in_flight; /* bytes of requests: of all so far; of those without answer yet */
    uint64_t given_out;        /* bytes of blocks */
    unsigned int holds;
    enum life life;
};

/* Guards the list and what is in it; never held across a driver call. */
static struct lock lock;
static struct pool *pools;
static atomic_uint pool_count;

void pools_after_fork(void) {
    pools = NULL;
    atomic_store(&pool_count, 0);
    lock_reset(&lock);
}

static struct pool *find(CUmemoryPool handle, CUdevice device) {
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->life == LIVING && pool->handle == handle && (handle || pool->device == device))
            return pool;
    return NULL;
}

static struct pool *add(CUmemoryPool handle, CUdevice device, const struct card *card) {
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    *pool = (struct pool){.next = pools, .handle = handle, .device = device, .card = card};
    pools = pool;
    atomic_fetch_add(&pool_count, 1);
    return pool;
}

struct pool *pools_hold(CUmemoryPool handle, CUdevice device, const struct card *card) {
    lock_take(&lock);
    struct pool *pool = find(handle, device);
    if (!pool) pool = add(handle, device, card);
    if (pool) pool->holds++;
    lock_release(&lock);
    return pool;
}

struct pool *pools_hold_known(CUmemoryPool handle) {
    lock_take(&lock);
    struct pool *pool = handle ? find(handle, 0) : NULL;
    if (pool) pool->holds++;
    lock_release(&lock);
    return pool;
}

static void unlink_pool(struct pool *pool) {
    struct pool **link = &pools;
    while (*link != pool) link = &(*link)->next;
    *link = pool->next;
    atomic_fetch_sub(&pool_count, 1);
}

void pools_release(struct pool *pool) {
    lock_take(&lock);
    bool gone = --pool->holds == 0 && pool->life == DESTROYED && pool->given_out == 0;
    if (gone) unlink_pool(pool);
    lock_release(&lock);
    if (!gone) return;
    account_return(&pool->charge);
    free(pool);
}

static unsigned int kind_of(const struct pool *pool) {
    return pool->handle ? KIND_POOL : KIND_GRAPH;
}

static uint64_t whole(uint64_t bytes) {
    return bytes > UINT64_MAX - GROWTH ? UINT64_MAX : (bytes + GROWTH - 1) & -(uint64_t)GROWTH;
}

CUresult pools_begin(struct pool *pool, uint64_t bytes) {
    struct charge charge;
    if (!pool->card) return CUDA_SUCCESS;
    CUresult refusal = reservation_from(pool->card, kind_of(pool), whole(bytes), &charge);
    if (refusal) return refusal;
    lock_take(&lock);
    bool joined = account_join(&pool->charge, &charge);
    if (joined) {
        pool->begun += whole(bytes);
        pool->in_flight += whole(bytes);
    }
    lock_release(&lock);
    if (joined) return CUDA_SUCCESS;
    account_return(&charge);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* What the driver says that a pool has of the card. */
static bool ask_driver(const struct pool *pool, uint64_t *reserved) {
    __typeof__(&cuMemPoolGetAttribute) of_pool =
        (__typeof__(&cuMemPoolGetAttribute))driver_entry(ENTRY_cuMemPoolGetAttribute);
    __typeof__(&cuDeviceGetGraphMemAttribute) of_graphs =
        (__typeof__(&cuDeviceGetGraphMemAttribute))driver_entry(ENTRY_cuDeviceGetGraphMemAttribute);
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    *reserved = 0;
    if (pool->handle && of_pool)
        result = of_pool(pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved);
    else if (!pool->handle && of_graphs)
        result = of_graphs(pool->device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, reserved);
    return result == CUDA_SUCCESS;
}

/* Leaves charged what a held pool has and what requests without answer may add to it: those that
 * were open before the driver was asked, and those that have begun since. The bytes that are
 * missing, since it has grown by more than was asked of it. */
static uint64_t settle(struct pool *pool) {
    lock_take(&lock);
    uint64_t begun = pool->begun, open = pool->in_flight, reserved = pool->given_out;
    enum life life = pool->life;
    lock_release(&lock);
    if (life == BEING_DESTROYED) return 0;
    bool known = life == DESTROYED || ask_driver(pool, &reserved);
    lock_take(&lock);
    if (!known) reserved = pool->given_out;
    uint64_t bound = reserved + open + (pool->begun - begun);
    if (pool->charge.bytes > bound) account_shrink(&pool->charge, bound);
    uint64_t missing = reserved > pool->charge.bytes ? reserved - pool->charge.bytes : 0;
    lock_release(&lock);
    return missing;
}

static bool charge_missing(struct pool *pool, uint64_t bytes) {
    struct charge charge;
    if (bytes == 0) return true;
    if (reservation_from(pool->card, kind_of(pool), bytes, &charge) != CUDA_SUCCESS) return false;
    lock_take(&lock);
    bool joined = account_join(&pool->charge, &charge);
    lock_release(&lock);
    if (!joined) account_return(&charge);
    return joined;
}

bool pools_end(struct pool *pool, uint64_t bytes) {
    if (!pool->card) return true;
    lock_take(&lock);
    pool->in_flight -= whole(bytes);
    lock_release(&lock);
    return charge_missing(pool, settle(pool));
}

bool pools_gave(struct pool *pool, CUdeviceptr pointer, uint64_t bytes) {
    struct handle stale;
    const struct handle handle = {.kind = POOLED, .key = pointer, .owner = pool, .span = bytes};
    if (!pool->card) return true;
    lock_take(&lock);
    pool->given_out += bytes;
    lock_release(&lock);
    if (handles_add(&handle, &stale)) {
        const struct pooled gone = {stale.owner, pointer, stale.span};
        if (stale.kind != NO_HANDLE) pools_settle_free(CUDA_SUCCESS, &gone);
        return true;
    }
    lock_take(&lock);
    pool->given_out -= bytes;
    lock_release(&lock);
    return false;
}

struct pooled pools_forget(CUdeviceptr pointer) {
    struct handle handle;
    if (!atomic_load_explicit(&pool_count, memory_order_relaxed) ||
        !handles_take(POOLED, pointer, &handle))
        return (struct pooled){0};
    return (struct pooled){handle.owner, pointer, handle.span};
}

void pools_settle_free(CUresult result, const struct pooled *block) {
    struct pool *pool = block->pool;
    struct handle stale;
    if (!pool) return;
    if (result != CUDA_SUCCESS) {
        const struct handle handle = {
            .kind = POOLED, .key = block->pointer, .owner = pool, .span = block->bytes};
        handles_add(&handle, &stale);
        return;
    }
    lock_take(&lock);
    pool->given_out -= block->bytes;
    pool->holds++;
    lock_release(&lock);
    settle(pool);
    pools_release(pool);
}

/* Returns by how many the pool is held. */
static unsigned int set_life(struct pool *pool, enum life life) {
    lock_take(&lock);
    pool->life = life;
    unsigned int holds = pool->holds;
    lock_release(&lock);
    return holds;
}

void pools_retire(struct pool *pool) {
    while (set_life(pool, BEING_DESTROYED) > 1) sched_yield();
}

void pools_settle_retired(CUresult result, struct pool *pool) {
    set_life(pool, result == CUDA_SUCCESS ? DESTROYED : LIVING);
    settle(pool);
}

/* The pools of a card, or all, one by one; others may come and go meanwhile. */
static struct pool *hold_next(unsigned int *number, const struct card *card) {
    unsigned int at = 0;
    lock_take(&lock);
    struct pool *pool = pools;
    while (pool && (at < *number || !pool->card || (card && pool->card != card))) {
        pool = pool->next;
        at++;
    }
    if (pool) pool->holds++;
    lock_release(&lock);
    *number = at + 1;
    return pool;
}

void pools_settle(void) {
    if (!atomic_load_explicit(&pool_count, memory_order_relaxed)) return;
    struct pool *pool;
    for (unsigned int number = 0; (pool = hold_next(&number, NULL));) {
        settle(pool);
        pools_release(pool);
    }
}

static bool lives(const struct pool *pool) {
    lock_take(&lock);
    bool living = pool->life == LIVING;
    lock_release(&lock);
    return living;
}

static void trim(const struct pool *pool) {
    __typeof__(&cuMemPoolTrimTo) trim_pool =
        (__typeof__(&cuMemPoolTrimTo))driver_entry(ENTRY_cuMemPoolTrimTo);
    __typeof__(&cuDeviceGraphMemTrim) trim_graphs =
        (__typeof__(&cuDeviceGraphMemTrim))driver_entry(ENTRY_cuDeviceGraphMemTrim);
    if (pool->handle && trim_pool && lives(pool)) trim_pool(pool->handle, 0);
    if (!pool->handle && trim_graphs) trim_graphs(pool->device);
}

bool pools_trim(const struct card *card) {
    bool any = false;
    if (!atomic_load_explicit(&pool_count, memory_order_relaxed)) return false;
    struct pool *pool;
    for (unsigned int number = 0; (pool = hold_next(&number, card)); any = true) {
        trim(pool);
        settle(pool);
        pools_release(pool);
    }
    return any;
}
