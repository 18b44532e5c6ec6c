/* The contexts that this process has. While there is only one, no driver has to be asked which is
 * current, nor on which card it is. */
#ifndef CASABA_KNOWN_CONTEXTS_H
#define CASABA_KNOWN_CONTEXTS_H

#include <stdbool.h>

#include "budget.h"
#include "cuda_api.h"

/* `card`: NULL where it has no budget. Once or more for the same context. */
void contexts_appeared(CUcontext context, struct card *card);

/* Before the driver destroys it. False: it was not known; else `card` is what it was known with. */
bool contexts_vanished(CUcontext context, struct card **card);

/* The only one, and its card. False: there are none, or several. */
bool contexts_only(CUcontext *context, struct card **card);

void contexts_after_fork(void);

#endif
