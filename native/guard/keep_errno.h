/* A hooked call leaves errno as it found it. */
#ifndef CASABA_KEEP_ERRNO_H
#define CASABA_KEEP_ERRNO_H

#include <errno.h>

static inline void restore_errno(const int *saved) { errno = *saved; }

#define KEEP_ERRNO __attribute__((cleanup(restore_errno))) const int saved_errno = errno

#endif
