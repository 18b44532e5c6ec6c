/* Whether the next launch on a card may go. It needs: a cap that has been paid for, this process's
 * turn within its budget, its tenant's lease of the card where there are other tenants, and little
 * enough work queued before it. Called under the lock of metering. */
#ifndef CASABA_ADMISSION_H
#define CASABA_ADMISSION_H

#include "meter.h"

/* How long a launch should wait before it asks again; 0: it may go now. */
uint64_t admission_wait(struct meter *meter, const struct cost *cost, uint64_t now_ns);

/* Gives way where it is due although the program launches nothing now. */
void admission_tick(struct meter *meter, uint64_t now_ns);

#endif
