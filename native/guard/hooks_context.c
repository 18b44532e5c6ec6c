/* Contexts that the program makes itself: each is charged until it is destroyed, and takes its
 * memory with it. */
#include "blocks.h"
#include "contexts.h"
#include "drivers.h"
#include "handles.h"
#include "keep_errno.h"
#include "known_contexts.h"
#include "placement.h"
#include "metering.h"
#include "reservation.h"

CUresult contexts_reserve(CUdevice device, struct charge *charge) {
    *charge = (struct charge){0};
    const struct card *card;
    CUresult refusal = reservation_card_on(device, &card);
    if (refusal || !card) return refusal;
    uint64_t bytes = atomic_load(&card->shares[0]->context_size);
    return reservation_from(card, KIND_CONTEXT, bytes, charge);
}

/* Keeps the charge with the new context. Without memory to remember it, it stays until the process
 * ends: too much is charged then, never too little. */
static CUresult keep(CUresult result, const CUcontext *context, CUdevice device,
                     struct charge *charge) {
    struct handle stale;
    if (result != CUDA_SUCCESS) {
        account_return(charge);
        return result;
    }
    contexts_appeared(*context, placement_of_device(device));
    struct handle handle = {
        .kind = CONTEXT, .key = (uint64_t)(uintptr_t)*context, .span = 1, .charge = *charge};
    if (charge->bytes && handles_add(&handle, &stale) && stale.kind != NO_HANDLE)
        account_return(&stale.charge);
    return result;
}

EXPORTED CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxCreate);
    struct charge charge;
    CUresult refusal = contexts_reserve(device, &charge);
    return refusal ? refusal : keep(real(context, flags, device), context, device, &charge);
}

EXPORTED CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxCreate_v2);
    struct charge charge;
    CUresult refusal = contexts_reserve(device, &charge);
    return refusal ? refusal : keep(real(context, flags, device), context, device, &charge);
}

EXPORTED CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity,
                                 int affinity_count, unsigned int flags, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxCreate_v3);
    struct charge charge;
    CUresult refusal = contexts_reserve(device, &charge);
    if (refusal) return refusal;
    return keep(real(context, affinity, affinity_count, flags, device), context, device, &charge);
}

EXPORTED CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params,
                                 unsigned int flags, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxCreate_v4);
    struct charge charge;
    CUresult refusal = contexts_reserve(device, &charge);
    return refusal ? refusal : keep(real(context, params, flags, device), context, device, &charge);
}

/* The driver may give context and addresses out again as soon as it has destroyed them, so what
 * is known of them is set aside first. */
static CUresult destroy(__typeof__(&cuCtxDestroy) real, CUcontext context) {
    struct handle handle, stale;
    bool charged = handles_take(CONTEXT, (uint64_t)(uintptr_t)context, &handle);
    metering_forget_context(context);
    struct card *card;
    bool known = contexts_vanished(context, &card);
    handles_doom(context);
    CUresult result = real(context);
    if (result != CUDA_SUCCESS) {
        if (known) contexts_appeared(context, card);
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

/* A context that is attached once more outlives as many detachments. */
static void add_use(CUcontext context) {
    struct handle handle, stale;
    if (!handles_take(CONTEXT, (uint64_t)(uintptr_t)context, &handle)) return;
    handle.span++;
    handles_add(&handle, &stale);
}

static bool drop_use(CUcontext context) {
    struct handle handle, stale;
    if (!handles_take(CONTEXT, (uint64_t)(uintptr_t)context, &handle)) return false;
    bool last = handle.span == 1;
    if (!last) handle.span--;
    handles_add(&handle, &stale);
    return last;
}

EXPORTED CUresult cuCtxAttach(CUcontext *context, unsigned int flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxAttach);
    CUresult result = real(context, flags);
    if (result == CUDA_SUCCESS && context) add_use(*context);
    return result;
}

EXPORTED CUresult cuCtxDetach(CUcontext context) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxDetach);
    if (drop_use(context)) return destroy(real, context);
    CUresult result = real(context);
    if (result != CUDA_SUCCESS) add_use(context);
    return result;
}

static uint64_t key_of(CUgreenCtx green) { return (uint64_t)(uintptr_t)green; }

static void destroy_green(uint64_t key) {
    __typeof__(&cuGreenCtxDestroy) real =
        (__typeof__(&cuGreenCtxDestroy))driver_entry(ENTRY_cuGreenCtxDestroy);
    if (real) real((CUgreenCtx)(uintptr_t)key);
}

/* A part of the card's processors with a context of its own; what is allocated there belongs to the
 * primary context and outlives it. */
EXPORTED CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc resources, CUdevice device,
                                   unsigned int flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuGreenCtxCreate);
    struct charge charge;
    CUresult refusal = contexts_reserve(device, &charge);
    if (refusal) return refusal;
    CUresult result = real(green, resources, device, flags);
    uint64_t key = result == CUDA_SUCCESS ? key_of(*green) : 0;
    if (result == CUDA_SUCCESS)
        contexts_appeared((CUcontext)*green, placement_of_device(device));
    return blocks_settle(result, CONTEXT, key, NULL, &charge, destroy_green);
}

EXPORTED CUresult cuGreenCtxDestroy(CUgreenCtx green) {
    KEEP_ERRNO;
    REAL_CUDA(cuGreenCtxDestroy);
    struct card *card;
    struct handle block = blocks_forget(CONTEXT, key_of(green));
    bool known = contexts_vanished((CUcontext)green, &card);
    CUresult result = real(green);
    if (known && result != CUDA_SUCCESS) contexts_appeared((CUcontext)green, card);
    return blocks_settle_free(result, &block);
}
