/* Takes bytes for a call that is about to be made. Each: CUDA_SUCCESS, with nothing charged where
 * the card has no budget; else why the call must not be made. */
#ifndef CASABA_RESERVATION_H
#define CASABA_RESERVATION_H

#include "account.h"
#include "cuda_api.h"

/* `kind`: KIND_*. Refused only after the process's own pools gave back what they do not use. */
CUresult reservation_from(const struct card *card, unsigned int kind, uint64_t bytes,
                          struct charge *charge);

CUresult reservation_on(CUdevice device, unsigned int kind, uint64_t bytes, struct charge *charge);

/* On the card of the thread's context, which it tells; NULL where the card has no budget. */
CUresult reservation_here(unsigned int kind, uint64_t bytes, CUcontext *context,
                          struct charge *charge);

/* The card of a call, NULL where it has no budget. */
CUresult reservation_card_on(CUdevice device, const struct card **card);
CUresult reservation_card_here(CUcontext *context, const struct card **card);
CUresult reservation_card_of_stream(CUstream stream, CUdevice *device, const struct card **card);

#endif
