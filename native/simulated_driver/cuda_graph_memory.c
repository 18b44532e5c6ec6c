/* Memory of graphs, by card. */
#include "cuda_graphs.h"

static struct graph_memory {
    uint64_t used, used_high, reserved, reserved_high;
} graph_memories[CARDS_MAX];

static uint64_t larger(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

CUresult graph_memory_use(unsigned card, uint64_t peak, int64_t change)
{
    struct graph_memory *memory = &graph_memories[card];
    uint64_t after = (uint64_t)((int64_t)memory->used + change);
    uint64_t need = larger(memory->used + peak, after);
    if (need > memory->reserved) {
        if (!account_charge(&driver.account, card, need - memory->reserved))
            return CUDA_ERROR_OUT_OF_MEMORY;
        memory->reserved = need;
    }
    memory->used = after;
    memory->used_high = larger(memory->used_high, need);
    memory->reserved_high = larger(memory->reserved_high, memory->reserved);
    return CUDA_SUCCESS;
}

void graph_memory_trim(unsigned card)
{
    struct graph_memory *memory = &graph_memories[card];
    account_release(&driver.account, card, memory->reserved - memory->used);
    memory->reserved = memory->used;
}

static CUresult enter_graph_memory(CUdevice device, const void *value)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return driver_leave(CUDA_ERROR_INVALID_DEVICE);
    return value == NULL ? driver_leave(CUDA_ERROR_INVALID_VALUE) : CUDA_SUCCESS;
}

static uint64_t *attribute_of(struct graph_memory *memory, CUgraphMem_attribute attribute)
{
    switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: return &memory->used;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: return &memory->used_high;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: return &memory->reserved;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: return &memory->reserved_high;
    default: return NULL;
    }
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult result = enter_graph_memory(device, value);
    if (result != CUDA_SUCCESS)
        return result;
    const uint64_t *found = attribute_of(&graph_memories[driver.cards[device]], attribute);
    if (found == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *(cuuint64_t *)value = *found;
    return driver_leave(CUDA_SUCCESS);
}

/* Only the high marks can be set, and only to 0. */
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult result = enter_graph_memory(device, value);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph_memory *memory = &graph_memories[driver.cards[device]];
    uint64_t *high = attribute_of(memory, attribute);
    if (*(cuuint64_t *)value != 0 || (high != &memory->used_high && high != &memory->reserved_high))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *high = high == &memory->used_high ? memory->used : memory->reserved;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult result = enter_graph_memory(device, &device);
    if (result != CUDA_SUCCESS)
        return result;
    graph_memory_trim(driver.cards[device]);
    return driver_leave(CUDA_SUCCESS);
}
