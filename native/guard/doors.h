/* The doors through which a program gets at a hooked function besides linking: dlsym and dlvsym
 * (stub_*.S enters here) and cuGetProcAddress. */
#ifndef CASABA_DOORS_H
#define CASABA_DOORS_H

#include <stdint.h>

/* In two registers for the stubs. */
struct resolution {
    uintptr_t address;
    uintptr_t is_answer; /* 1: hand it to the program; 0: jump to it with the program's arguments */
};

/* `caller` is the return address of the program's call: what RTLD_NEXT starts from. */
struct resolution doors_resolve_dlsym(void *handle, const char *name, uintptr_t caller);
struct resolution doors_resolve_dlvsym(void *handle, const char *name, const char *version,
                                       uintptr_t caller);

#endif
