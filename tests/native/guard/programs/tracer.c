/* Another library that is preloaded: looks for what lies behind it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

void *tracer_next(const char *name) { return dlsym(RTLD_NEXT, name); }

void *tracer_next_version(const char *name, const char *version) {
    return dlvsym(RTLD_NEXT, name, version);
}

/* In front of the C library's. */
pid_t getppid(void) {
    pid_t (*real)(void) = (pid_t (*)(void))(__UINTPTR_TYPE__)dlsym(RTLD_NEXT, "getppid");
    return real ? real() : -1;
}
