/* Memory pools. What a pool has reserved is charged to the card; freed memory stays reserved until
 * the program waits for something, and then what is above the release threshold is given back. */
#ifndef CASABA_CUDA_POOLS_H
#define CASABA_CUDA_POOLS_H

#include "cuda_driver.h"

struct CUmemPoolHandle_st {
    CUmemoryPool next;
    unsigned card;
    bool destroyed; /* but some of its memory is in use */
    CUmemPoolProps props;
    cuuint64_t threshold, reserved, reserved_high, used, used_high;
    int reuse[3];
    CUmemAccess_flags access[CARDS_MAX]; /* by device */
};

/* A pool on the device; NULL when there is no memory. */
CUmemoryPool pool_make(CUdevice device, const CUmemPoolProps *props);

/* Takes the lock for a call about a pool that has not been destroyed. */
CUresult pool_enter(CUmemoryPool pool);

/* Called behind every wait. */
void pools_trim(void);

/* Gives back all that is not in use of the card, when a context ends. */
void pools_empty(unsigned card);

/* A block of the pool is free again. */
void pool_give_back(CUmemoryPool pool, size_t bytes);

/* A block of the pool is accounted elsewhere from now on. */
void pool_hand_over(CUmemoryPool pool, size_t bytes);

#endif
