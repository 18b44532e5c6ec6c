/* Contexts: made, current, destroyed. */
#include <stdlib.h>

#include "cuda_capture.h"
#include "cuda_graphs.h"
#include "cuda_pools.h"
#include "cuda_work.h"

static _Thread_local struct {
    CUcontext contexts[CONTEXT_STACK_DEPTH];
    unsigned depth;
} stack;

bool context_lives(CUcontext context)
{
    for (CUcontext living = driver.contexts; living != NULL; living = living->next)
        if (living == context)
            return true;
    return false;
}

CUresult context_current(CUcontext *context)
{
    *context = stack.depth == 0 ? NULL : stack.contexts[stack.depth - 1];
    if (*context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context_lives(*context) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static bool push(CUcontext context)
{
    if (stack.depth == CONTEXT_STACK_DEPTH)
        return false;
    stack.contexts[stack.depth++] = context;
    return true;
}

void resource_add(struct resource *resource, CUcontext context, enum resource_kind kind)
{
    *resource = (struct resource){.next = context->resources, .context = context, .kind = kind};
    if (resource->next != NULL)
        resource->next->previous = resource;
    context->resources = resource;
}

void resource_remove(struct resource *resource)
{
    if (resource->next != NULL)
        resource->next->previous = resource->previous;
    if (resource->previous != NULL)
        resource->previous->next = resource->next;
    else
        resource->context->resources = resource->next;
}

CUresult context_begin(CUcontext context)
{
    if (!account_charge(&driver.account, context->card,
                        driver.host.cards[context->card].context_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->last_ns = context->blocking_ns = context->passed_ns = 0;
    context->next = driver.contexts;
    driver.contexts = context;
    if (streams_begin(context))
        return CUDA_SUCCESS;
    context_end(context);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void context_end(CUcontext context)
{
    static void (*const destroy[])(struct resource *) = {
        [RESOURCE_BLOCK] = block_destroy,
        [RESOURCE_STREAM] = stream_destroy,
        [RESOURCE_EVENT] = event_destroy,
        [RESOURCE_MODULE] = module_destroy,
        [RESOURCE_ARRAY] = array_destroy,
        [RESOURCE_MIPMAP] = mipmap_destroy,
    };
    while (context->resources != NULL)
        destroy[context->resources->kind](context->resources);
    pools_empty(context->card);
    graph_memory_trim(context->card);
    CUcontext *link = &driver.contexts;
    while (*link != context)
        link = &(*link)->next;
    *link = context->next;
    account_release(&driver.account, context->card,
                    driver.host.cards[context->card].context_bytes);
}

bool context_destroy(CUcontext context)
{
    position_wait(context->card, context->last_ns);
    if (!context_lives(context))
        return false;
    context_end(context);
    if (stack.depth > 0 && stack.contexts[stack.depth - 1] == context)
        stack.depth--;
    free(context);
    return true;
}

static CUresult create(CUcontext *context, unsigned int flags, CUdevice device)
{
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    CUcontext made = calloc(1, sizeof *made);
    if (made == NULL || !push(made)) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct CUctx_st){.device = device, .card = driver.cards[device], .flags = flags,
                              .attached = 1};
    CUresult result = context_begin(made);
    if (result != CUDA_SUCCESS) {
        stack.depth--;
        free(made);
        return result;
    }
    *context = made;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    CUresult result = driver_enter();
    return result != CUDA_SUCCESS ? result : driver_leave(create(context, flags, device));
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int affinity_count,
                        unsigned int flags, CUdevice device)
{
    if (affinity_count < 0 || (affinity == NULL) != (affinity_count == 0))
        return CUDA_ERROR_INVALID_VALUE;
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
                        CUdevice device)
{
    if (params == NULL)
        return cuCtxCreate_v2(context, flags, device);
    return cuCtxCreate_v3(context, params->execAffinityParams, params->numExecAffinityParams, flags,
                          device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (!context_lives(context) || context->primary || context->green ||
        !context_destroy(context))
        return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
    return driver_leave(CUDA_SUCCESS);
}

/* From before CUDA 4: uses of the current context are counted. */
CUresult cuCtxAttach(CUcontext *context, unsigned int flags)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL || flags != 0)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = context_current(context);
    if (result == CUDA_SUCCESS)
        (*context)->attached++;
    return driver_leave(result);
}

CUresult cuCtxDetach(CUcontext context)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL || !context_lives(context) || context->attached == 0)
        return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
    bool last = --context->attached == 0 && !context->primary && !context->green;
    return driver_leave(!last || context_destroy(context) ? CUDA_SUCCESS
                                                          : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuCtxDestroy(CUcontext context)
{
    return cuCtxDestroy_v2(context);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = context_current(context);
    return driver_leave(*context == NULL ? CUDA_SUCCESS : result);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (context != NULL && !context_lives(context))
        return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
    if (stack.depth > 0)
        stack.depth--;
    if (context != NULL)
        push(context);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL || !context_lives(context))
        return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
    return driver_leave(push(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    return cuCtxPushCurrent_v2(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (stack.depth == 0)
        return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
    stack.depth--;
    if (context != NULL)
        *context = stack.contexts[stack.depth];
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    return cuCtxPopCurrent_v2(context);
}

/* Takes the lock and finds the context asked about: the current one for NULL. */
static CUresult enter_context(CUcontext *context)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (*context == NULL)
        result = context_current(context);
    else if (!context_lives(*context))
        result = CUDA_ERROR_INVALID_CONTEXT;
    return result == CUDA_SUCCESS ? result : driver_leave(result);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    CUresult result = enter_context(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *device = context->device;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    return cuCtxGetDevice_v2(device, NULL);
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    CUresult result = enter_context(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (version == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *version = 3020;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    CUcontext context = NULL;
    CUresult result = enter_context(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *flags = context->flags;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    CUresult result = enter_context(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = fault_has_failed() ? CUDA_ERROR_LAUNCH_FAILED : capture_check_context(context);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    position_wait(context->card, context->last_ns);
    pools_trim();
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void)
{
    return cuCtxSynchronize_v2(NULL);
}
