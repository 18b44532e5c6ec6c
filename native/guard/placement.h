/* Which limited card a call is about. */
#ifndef CASABA_PLACEMENT_H
#define CASABA_PLACEMENT_H

#include "budget.h"
#include "cuda_api.h"
#include "nvml_api.h"

/* NULL: no budget names the card, or the driver does not know it. */
struct card *placement_of_device(CUdevice device);
struct card *placement_of_nvml(nvmlDevice_t device);

/* The card of the calling thread's current context, and that context. */
struct card *placement_of_thread(CUcontext *context);

/* The device of a stream. False: there is none. */
bool placement_device_of_stream(CUstream stream, CUdevice *device);

void placement_after_fork(void);

#endif
