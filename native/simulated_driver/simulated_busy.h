/* The card's own account of its time, for tests and measurements. It is no part of NVML; a program
 * finds it by dlsym in the simulated libnvidia-ml, `nvidia-smi --busy` prints it. */
#ifndef CASABA_SIMULATED_BUSY_H
#define CASABA_SIMULATED_BUSY_H

#include "nvml_api.h"

typedef struct {
    unsigned long long serial;  /* of the process: 1 for the first that ever used the card */
    unsigned long long busy_ns; /* served on this card, ever */
    unsigned int pid;           /* as the caller sees it; once it has ended, as it saw itself */
    unsigned int living;        /* 0 when it has ended */
} casabaSimulatedBusy_t;

/* Accounts of the processes that use the card or have used it (of the ended, the last 4096). *count
 * in: room, out: how many there are; NVML_ERROR_INSUFFICIENT_SIZE when there is no room for all.
 * card_busy gets the whole of the card ever, now the time of the account (CLOCK_MONOTONIC), both in
 * nanoseconds; either may be NULL. */
NVML_API(casabaSimulatedBusy, nvmlDevice_t device, casabaSimulatedBusy_t *entries,
         unsigned int *count, unsigned long long *card_busy, unsigned long long *now)

#endif
