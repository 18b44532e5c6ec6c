/* Memory pools, and the one of each card behind the memory nodes of graphs. What a pool reserves of
 * the card is charged, not what it gives out: before each request all of it, and afterwards what
 * the driver says that the pool has. */
#ifndef CASABA_POOLS_H
#define CASABA_POOLS_H

#include "account.h"
#include "cuda_api.h"

struct pool;

/* The record of a pool, made where there is none, for the time of a call; NULL: no memory. A
 * handle of NULL stands for the graphs' memory of the device. `card` NULL: it has no limit. */
struct pool *pools_hold(CUmemoryPool handle, CUdevice device, const struct card *card);
void pools_release(struct pool *pool);

/* The record where there is one. */
struct pool *pools_hold_known(CUmemoryPool handle);

/* A request of a held pool: before and after the driver's call. `_end` is false when the pool grew
 * by more than there is room for: the block must not stay. */
CUresult pools_begin(struct pool *pool, uint64_t bytes);
bool pools_end(struct pool *pool, uint64_t bytes);

/* A held pool gave out a block. False: no memory to remember it; it must not stay. */
bool pools_gave(struct pool *pool, CUdeviceptr pointer, uint64_t bytes);

struct pooled {
    struct pool *pool; /* NULL: it was no pool's */
    CUdeviceptr pointer;
    uint64_t bytes;
};

/* Freeing a pool's block takes two steps, as with all memory. */
struct pooled pools_forget(CUdeviceptr pointer);
void pools_settle_free(CUresult result, const struct pooled *block);

/* Destroying a held pool takes two steps, too: after the first nobody asks the driver about it any
 * more. What it gave out lives on. */
void pools_retire(struct pool *pool);
void pools_settle_retired(CUresult result, struct pool *pool);

/* Charges what the pools have now, where that has become less. */
void pools_settle(void);

/* Has the driver take back what the pools of a card do not use. False: there are none. */
bool pools_trim(const struct card *card);

void pools_after_fork(void);

#endif
