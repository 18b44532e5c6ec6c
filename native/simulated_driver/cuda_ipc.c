/* Device memory of another process, and of another programming interface. The contents are not
 * shared here; the account is. */
#include <stdlib.h>
#include <string.h>

#include "card_shares.h"
#include "cuda_blocks.h"

enum { TICKET_MAGIC = 0x43504943 };

_Static_assert(sizeof(struct ticket) <= sizeof(CUipcMemHandle), "CUipcMemHandle");

CUresult block_share(struct block *block, struct ticket *ticket)
{
    if (!block->shared) {
        int number = share_make(&driver.account, block->card, block->range.size);
        if (number < 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        block->share = (unsigned)number;
        block->shared = true;
    }
    *ticket = (struct ticket){TICKET_MAGIC, block->share,
                              share_key(&driver.account, block->share), block->range.size};
    return CUDA_SUCCESS;
}

CUresult block_join(struct block **block, const struct ticket *ticket, enum block_kind kind)
{
    struct share share;
    if (ticket->magic != TICKET_MAGIC ||
        !share_join(&driver.account, ticket->number, ticket->key, &share))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = block_make(block, ticket->size, kind);
    if (result != CUDA_SUCCESS) {
        share_leave(&driver.account, ticket->number);
        return result;
    }
    (*block)->shared = true;
    (*block)->share = ticket->number;
    return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    struct ticket ticket;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct block *block = range_at(&driver.blocks, pointer);
    if (handle == NULL || block == NULL ||
        (block->kind != BLOCK_DEVICE && block->kind != BLOCK_LOW_DEVICE))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = block_share(block, &ticket);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &ticket, sizeof ticket);
    return driver_leave(CUDA_SUCCESS);
}

/* A share is held once by a process. */
static struct block *opened(unsigned number)
{
    for (CUcontext context = driver.contexts; context != NULL; context = context->next)
        for (struct resource *resource = context->resources; resource != NULL;
             resource = resource->next) {
            struct block *block = resource->kind == RESOURCE_BLOCK ? block_of(resource) : NULL;
            if (block != NULL && block->shared && block->share == number)
                return block;
        }
    return NULL;
}

static CUresult open_ticket(CUdeviceptr *pointer, const struct ticket *ticket)
{
    struct block *block = opened(ticket->number);
    if (block != NULL && block->kind != BLOCK_IMPORTED)
        return CUDA_ERROR_INVALID_CONTEXT; /* its own */
    CUresult result =
        block == NULL ? block_join(&block, ticket, BLOCK_IMPORTED) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    block->holders++;
    *pointer = block->range.base;
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    struct ticket ticket;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(&ticket, &handle, sizeof ticket);
    if (pointer == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    return driver_leave(open_ticket(pointer, &ticket));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct block *block = block_at(pointer);
    if (block == NULL || block->kind != BLOCK_IMPORTED || !block->shared)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (--block->holders == 0)
        block_free(block);
    return driver_leave(CUDA_SUCCESS);
}

/* Memory that another programming interface made is its business, so none is charged. */
struct CUextMemory_st {
    unsigned long long size;
};

CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *descriptor)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (memory == NULL || descriptor == NULL || descriptor->size == 0)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (descriptor->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return driver_leave(CUDA_ERROR_NOT_SUPPORTED);
    *memory = malloc(sizeof **memory);
    if (*memory == NULL)
        return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
    (*memory)->size = descriptor->size;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *pointer, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *descriptor)
{
    struct block *block;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (pointer == NULL || memory == NULL || descriptor == NULL || descriptor->size == 0 ||
        descriptor->offset > memory->size || descriptor->size > memory->size - descriptor->offset)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = block_make(&block, descriptor->size, BLOCK_EXTERNAL);
    if (result == CUDA_SUCCESS)
        *pointer = block->range.base;
    return driver_leave(result);
}

/* Mapped buffers are freed by cuMemFree. */
CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    if (memory == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    free(memory);
    return CUDA_SUCCESS;
}
