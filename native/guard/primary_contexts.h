/* Primary contexts: one a device and process, shared by all that retain it. */
#ifndef CASABA_PRIMARY_CONTEXTS_H
#define CASABA_PRIMARY_CONTEXTS_H

void primary_contexts_after_fork(void);

#endif
