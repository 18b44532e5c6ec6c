/* Contexts that the program makes itself: each is charged until it is destroyed, and takes its
 * memory with it. */
#include "contexts.h"
#include "drivers.h"
#include "handles.h"
#include "keep_errno.h"
#include "membership.h"
#include "placement.h"

CUresult contexts_reserve(CUdevice device, struct charge *charge) {
    *charge = (struct charge){0};
    enum stance stance = membership_join();
    if (stance == REFUSING) return CUDA_ERROR_NOT_INITIALIZED;
    const struct card *card = stance == GUARDED ? placement_of_device(device) : NULL;
    if (!card) return CUDA_SUCCESS;
    uint64_t bytes = atomic_load(&card->shares[0]->context_size);
    return account_reserve(card, OVERHEAD, bytes, charge) ? CUDA_SUCCESS
                                                          : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Keeps the charge with the new context. Without memory to remember it, it stays until the process
 * ends: too much is charged then, never too little. */
static CUresult keep(CUresult result, const CUcontext *context, struct charge *charge) {
    struct handle stale;
    if (result != CUDA_SUCCESS) {
        account_return(charge);
        return result;
    }
    struct handle handle = {
        .kind = CONTEXT, .key = (uint64_t)(uintptr_t)*context, .charge = *charge};
    if (charge->bytes && handles_add(&handle, &stale) && stale.kind != NO_HANDLE)
        account_return(&stale.charge);
    return result;
}

EXPORTED CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxCreate);
    struct charge charge;
    CUresult refusal = contexts_reserve(device, &charge);
    return refusal ? refusal : keep(real(context, flags, device), context, &charge);
}

EXPORTED CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxCreate_v2);
    struct charge charge;
    CUresult refusal = contexts_reserve(device, &charge);
    return refusal ? refusal : keep(real(context, flags, device), context, &charge);
}

EXPORTED CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity,
                                 int affinity_count, unsigned int flags, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxCreate_v3);
    struct charge charge;
    CUresult refusal = contexts_reserve(device, &charge);
    if (refusal) return refusal;
    return keep(real(context, affinity, affinity_count, flags, device), context, &charge);
}

EXPORTED CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params,
                                 unsigned int flags, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxCreate_v4);
    struct charge charge;
    CUresult refusal = contexts_reserve(device, &charge);
    return refusal ? refusal : keep(real(context, params, flags, device), context, &charge);
}

/* The driver may give context and addresses out again as soon as it has destroyed them, so what
 * is known of them is set aside first. */
static CUresult destroy(__typeof__(&cuCtxDestroy) real, CUcontext context) {
    struct handle handle, stale;
    bool charged = handles_take(CONTEXT, (uint64_t)(uintptr_t)context, &handle);
    handles_doom(context);
    CUresult result = real(context);
    if (result != CUDA_SUCCESS) {
        handles_spare(context);
        if (charged) handles_add(&handle, &stale);
        return result;
    }
    handles_return_doomed(context);
    if (charged) account_return(&handle.charge);
    return result;
}

EXPORTED CUresult cuCtxDestroy(CUcontext context) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxDestroy);
    return destroy(real, context);
}

EXPORTED CUresult cuCtxDestroy_v2(CUcontext context) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxDestroy_v2);
    return destroy(real, context);
}
