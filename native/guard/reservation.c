#include "reservation.h"

#include "membership.h"
#include "placement.h"
#include "pools.h"
#include "sharing.h"

CUresult reservation_from(const struct card *card, unsigned int kind, uint64_t bytes,
                          struct charge *charge) {
    if (!card) *charge = (struct charge){0};
    if (!card || account_reserve(card, kind, bytes, charge)) return CUDA_SUCCESS;
    bool more = sharing_settle();
    more |= pools_trim(card);
    if (more && account_reserve(card, kind, bytes, charge)) return CUDA_SUCCESS;
    account_count_refusal(card);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult reservation_card_on(CUdevice device, const struct card **card) {
    enum stance stance = membership_join();
    *card = stance == GUARDED ? placement_of_device(device) : NULL;
    return stance == REFUSING ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult reservation_card_here(CUcontext *context, const struct card **card) {
    enum stance stance = membership_join();
    *context = NULL;
    *card = stance == GUARDED ? placement_of_thread(context) : NULL;
    return stance == REFUSING ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult reservation_card_of_stream(CUstream stream, CUdevice *device, const struct card **card) {
    enum stance stance = membership_join();
    bool known = stance == GUARDED && placement_device_of_stream(stream, device);
    *card = known ? placement_of_device(*device) : NULL;
    return stance == REFUSING ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult reservation_on(CUdevice device, unsigned int kind, uint64_t bytes, struct charge *charge) {
    const struct card *card;
    *charge = (struct charge){0};
    CUresult refusal = reservation_card_on(device, &card);
    return refusal ? refusal : reservation_from(card, kind, bytes, charge);
}

CUresult reservation_here(unsigned int kind, uint64_t bytes, CUcontext *context,
                          struct charge *charge) {
    const struct card *card;
    CUresult refusal = reservation_card_here(context, &card);
    if (refusal) *charge = (struct charge){0};
    return refusal ? refusal : reservation_from(card, kind, bytes, charge);
}
