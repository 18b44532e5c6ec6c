#include "primary_contexts.h"

#include "contexts.h"
#include "drivers.h"
#include "handles.h"
#include "keep_errno.h"
#include "known_contexts.h"
#include "lock.h"
#include "metering.h"
#include "placement.h"

enum { KNOWN_DEVICES = 64 };

static struct primary {
    unsigned int references; /* that this process holds */
    CUcontext context;
    bool charged;
    struct charge charge;
} primaries[KNOWN_DEVICES];
static struct lock lock;

void primary_contexts_after_fork(void) {
    for (int i = 0; i < KNOWN_DEVICES; i++) primaries[i] = (struct primary){0};
    lock_reset(&lock);
}

static struct primary *primary_of(CUdevice device) {
    return device >= 0 && device < KNOWN_DEVICES ? &primaries[device] : NULL;
}

static bool is_charged(struct primary *primary) {
    lock_take(&lock);
    bool charged = primary->charged;
    lock_release(&lock);
    return charged;
}

/* Whether somebody must still pay for the context that was just retained. */
static bool add_reference(struct primary *primary, CUcontext context, struct charge *offered) {
    lock_take(&lock);
    primary->references++;
    primary->context = context;
    bool unpaid = !primary->charged && !offered;
    if (!primary->charged && offered) {
        primary->charge = *offered;
        primary->charged = true;
        *offered = (struct charge){0};
    }
    lock_release(&lock);
    if (offered) account_return(offered); /* another thread was faster */
    return unpaid;
}

/* Takes what was charged once nobody holds the context. True: nobody does. */
static bool drop_reference(struct primary *primary, struct charge *charge) {
    *charge = (struct charge){0};
    lock_take(&lock);
    if (primary->references) primary->references--;
    bool last = primary->references == 0;
    if (last) {
        *charge = primary->charge;
        primary->charge = (struct charge){0};
        primary->charged = false;
    }
    lock_release(&lock);
    return last;
}

EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuDevicePrimaryCtxRetain);
    struct primary *primary = primary_of(device);
    if (!primary) return real(context, device);
    for (;;) {
        struct charge charge;
        bool pays = !is_charged(primary);
        CUresult refusal = pays ? contexts_reserve(device, &charge) : CUDA_SUCCESS;
        if (refusal) return refusal;
        CUresult result = real(context, device);
        if (result != CUDA_SUCCESS) {
            if (pays) account_return(&charge);
            return result;
        }
        contexts_appeared(*context, placement_of_device(device));
        if (!add_reference(primary, *context, pays ? &charge : NULL)) return result;
        /* Another thread let the context go meanwhile, and its charge: once more, and pay. */
        __typeof__(&cuDevicePrimaryCtxRelease) release =
            (__typeof__(&cuDevicePrimaryCtxRelease))driver_entry(
                ENTRY_cuDevicePrimaryCtxRelease_v2);
        if (release) release(device);
        drop_reference(primary, &charge);
        account_return(&charge);
    }
}

static CUcontext context_of(struct primary *primary, unsigned int references) {
    lock_take(&lock);
    CUcontext context = primary->references <= references ? primary->context : NULL;
    lock_release(&lock);
    return context;
}

/* The last release destroys the context and what was allocated in it. */
static CUresult release(__typeof__(&cuDevicePrimaryCtxRelease) real, CUdevice device) {
    struct primary *primary = primary_of(device);
    if (!primary) return real(device);
    CUcontext context = context_of(primary, 1);
    if (context) metering_forget_context(context);
    if (context) handles_doom(context);
    struct card *card;
    bool known = contexts_vanished(context, &card);
    CUresult result = real(device);
    struct charge charge = {0};
    bool gone = result == CUDA_SUCCESS && drop_reference(primary, &charge);
    if (context && gone) handles_return_doomed(context);
    if (context && !gone) handles_spare(context);
    if (known && !gone) contexts_appeared(context, card);
    account_return(&charge);
    return result;
}

/* A reset destroys the context under all who hold it; they still have to release it. */
static CUresult reset(__typeof__(&cuDevicePrimaryCtxReset) real, CUdevice device) {
    struct primary *primary = primary_of(device);
    if (!primary) return real(device);
    CUcontext context = context_of(primary, ~0u);
    if (context) metering_forget_context(context);
    if (context) handles_doom(context);
    CUresult result = real(device);
    if (result != CUDA_SUCCESS) {
        if (context) handles_spare(context);
        return result;
    }
    if (context) handles_return_doomed(context);
    lock_take(&lock);
    struct charge charge = primary->charge;
    primary->charge = (struct charge){0};
    primary->charged = false;
    lock_release(&lock);
    account_return(&charge);
    return result;
}

EXPORTED CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuDevicePrimaryCtxRelease);
    return release(real, device);
}

EXPORTED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuDevicePrimaryCtxRelease_v2);
    return release(real, device);
}

EXPORTED CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuDevicePrimaryCtxReset);
    return reset(real, device);
}

EXPORTED CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuDevicePrimaryCtxReset_v2);
    return reset(real, device);
}
