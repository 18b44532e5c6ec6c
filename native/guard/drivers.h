/* The real entry points of the loaded driver libraries, by name. */
#ifndef CASABA_DRIVERS_H
#define CASABA_DRIVERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"
#include "nvml_api.h"

enum library { CUDA, NVML, LIBRARY_COUNT };

enum entry {
#define HOOK(library, name, base, since) ENTRY_##name,
#define ENTRY(library, name) ENTRY_##name,
#include "hooks.def"
#undef HOOK
#undef ENTRY
    ENTRY_COUNT
};

/* Addresses that are known; 0: not yet, or never. */
extern atomic_uintptr_t driver_addresses[ENTRY_COUNT] __attribute__((visibility("hidden")));
uintptr_t driver_find_entry(enum entry entry);

/* The address of an entry in its library; 0 while the library is not loaded or if it lacks it. */
static inline uintptr_t driver_entry(enum entry entry) {
    uintptr_t address = atomic_load_explicit(&driver_addresses[entry], memory_order_acquire);
    return address ? address : driver_find_entry(entry);
}

/* For an entry that the library only hands out through cuGetProcAddress. */
void driver_learn_entry(enum entry entry, uintptr_t address);

/* What a hook answers when its real entry is absent. */
CUresult driver_absent_cuda(void);
nvmlReturn_t driver_absent_nvml(void);

/* Declares `real`, the pointer to the driver's NAME, or returns the proper error. */
#define REAL(name, absent)                                                     \
    __typeof__(&name) real = (__typeof__(&name))driver_entry(ENTRY_##name);    \
    if (!real) return absent()
#define REAL_CUDA(name) REAL(name, driver_absent_cuda)
#define REAL_NVML(name) REAL(name, driver_absent_nvml)

#define EXPORTED __attribute__((visibility("default")))

#endif
