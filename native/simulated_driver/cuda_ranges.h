/* Address ranges that do not overlap, in a balanced tree (the C library's tsearch), so that looking
 * up one of many thousand stays cheap. A range is the first member of what is kept. */
#ifndef CASABA_CUDA_RANGES_H
#define CASABA_CUDA_RANGES_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda_api.h"

struct range {
    CUdeviceptr base;
    size_t size; /* above 0 */
};

/* False when there is no memory for it. The range must not overlap one that is in the tree. */
bool range_insert(void **tree, struct range *range);
void range_remove(void **tree, struct range *range);

/* Any range of the tree that overlaps [base, base + size), else NULL. */
void *range_overlapping(void *const *tree, CUdeviceptr base, size_t size);

/* The range that holds the address, else NULL. */
void *range_at(void *const *tree, CUdeviceptr address);

/* Fresh addresses, a multiple of `alignment`; readable and writable when `backed`. Pages cost
 * nothing until they are touched. NULL when the process cannot have more addresses. */
void *addresses_take(size_t bytes, size_t alignment, bool backed);
void addresses_give_back(CUdeviceptr base, size_t bytes);

/* The same, below 4 GiB, for entry points with 32-bit pointers. */
void *addresses_take_low(size_t bytes);

#endif
