/* A lock of one word, for threads of one process; never held across a driver call. A fork child
 * sets it to zero. */
#ifndef CASABA_LOCK_H
#define CASABA_LOCK_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lock {
    atomic_uint word; /* 0 free, 1 taken, 2 taken and waited for */
};

static inline bool lock_try(struct lock *lock) {
    unsigned int free = 0;
    return atomic_compare_exchange_strong(&lock->word, &free, 1);
}

static inline void lock_take(struct lock *lock) {
    if (lock_try(lock)) return;
    while (atomic_exchange(&lock->word, 2) != 0)
        syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static inline void lock_release(struct lock *lock) {
    if (atomic_exchange(&lock->word, 0) == 2)
        syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static inline void lock_reset(struct lock *lock) { atomic_store(&lock->word, 0); }

#endif
