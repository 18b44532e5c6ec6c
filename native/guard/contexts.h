/* What a context costs: the policy's context_size, as overhead of the card. */
#ifndef CASABA_CONTEXTS_H
#define CASABA_CONTEXTS_H

#include "account.h"
#include "cuda_api.h"

/* CUDA_SUCCESS, with nothing charged where the card has no budget; else why it must not be. */
CUresult contexts_reserve(CUdevice device, struct charge *charge);

#endif
