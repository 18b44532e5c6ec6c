#include "cuda_blocks.h"

#include <stdlib.h>

#include "card_shares.h"
#include "cuda_graphs.h"
#include "cuda_pools.h"

struct block *block_of(struct resource *resource)
{
    return (struct block *)(void *)((char *)resource - offsetof(struct block, resource));
}

static void **tree_of(enum block_kind kind)
{
    return kind == BLOCK_HOST ? &driver.host_blocks : &driver.blocks;
}

static void destroy(struct block *block)
{
    range_remove(tree_of(block->kind), &block->range);
    if (block->resource.context != NULL)
        resource_remove(&block->resource);
    addresses_give_back(block->range.base, block->range.size);
    if (block->kind == BLOCK_POOL && !block->shared)
        pool_give_back(block->pool, block->range.size);
    if (block->shared)
        share_leave(&driver.account, block->share);
    else if (block->charged > 0)
        account_release(&driver.account, block->card, block->charged);
    free(block);
}

void block_destroy(struct resource *resource)
{
    destroy(block_of(resource));
}

static struct block *make(size_t bytes, enum block_kind kind, unsigned card)
{
    struct block *block = calloc(1, sizeof *block);
    void *memory = kind == BLOCK_LOW_DEVICE ? addresses_take_low(bytes)
                                            : addresses_take(bytes, 1, true);
    if (block != NULL && memory != NULL) {
        *block = (struct block){.range = {(CUdeviceptr)(uintptr_t)memory, bytes}, .kind = kind,
                                .card = card};
        if (range_insert(tree_of(kind), &block->range))
            return block;
    }
    if (memory != NULL)
        addresses_give_back((CUdeviceptr)(uintptr_t)memory, bytes);
    free(block);
    return NULL;
}

CUresult block_make(struct block **block, size_t bytes, enum block_kind kind)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    uint64_t charge = kind == BLOCK_DEVICE || kind == BLOCK_LOW_DEVICE ? bytes : 0;
    if (charge > 0 && (fault_refuses_allocation() ||
                       !account_charge(&driver.account, context->card, charge)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *block = make(bytes, kind, context->card);
    if (*block == NULL) {
        account_release(&driver.account, context->card, charge);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*block)->charged = charge;
    resource_add(&(*block)->resource, context, RESOURCE_BLOCK);
    return CUDA_SUCCESS;
}

CUresult block_make_graph(struct block **block, size_t bytes, unsigned card)
{
    *block = make(bytes, BLOCK_GRAPH, card);
    if (*block == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*block)->holders = 1;
    return CUDA_SUCCESS;
}

void block_drop(struct block *block)
{
    if (--block->holders == 0 && !block->allocated)
        destroy(block);
}

struct block *block_at(CUdeviceptr pointer)
{
    struct block *block = range_at(&driver.blocks, pointer);
    return block != NULL && block->range.base == pointer ? block : NULL;
}

void block_free(struct block *block)
{
    if (block->kind != BLOCK_GRAPH) {
        destroy(block);
        return;
    }
    if (block->allocated)
        graph_memory_use(block->card, 0, -(int64_t)block->range.size);
    block->allocated = false;
    if (block->holders == 0)
        destroy(block);
}
