#include "watcher.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "elf_symbols.h"
#include "keep_errno.h"
#include "metering.h"

enum { STACK_BYTES = 128 * 1024, SLEEP_SLACK_NS = 1000 };

static atomic_bool started;

/* Before glibc 2.34 these are in libpthread.so.0, which this library must not need by name, and
 * which may be loaded later than it, with the driver. */
#pragma weak pthread_create
#pragma weak pthread_sigmask
#pragma weak pthread_attr_setstacksize

struct search {
    const char *name;
    uintptr_t address;
};

static bool stop_at_definition(const struct elf_object *object, void *context) {
    struct search *search = context;
    const char *soname = object->soname;
    if (!soname || (strcmp(soname, "libc.so.6") != 0 && strcmp(soname, "libpthread.so.0") != 0))
        return false;
    search->address = elf_function(object, search->name);
    return search->address != 0;
}

static uintptr_t find(const char *name) {
    struct search search = {.name = name};
    elf_visit_objects(stop_at_definition, &search);
    return search.address;
}

#define FOUND(name) (name ? name : (__typeof__(&name))find(#name))

static void *watch(void *unused) {
    prctl(PR_SET_NAME, "casaba-watcher");
    prctl(PR_SET_TIMERSLACK, SLEEP_SLACK_NS);
    for (;;) {
        const struct timespec pause = {.tv_nsec = (long)metering_tick()};
        nanosleep(&pause, NULL);
    }
    return unused;
}

/* The new thread inherits this one's mask. */
static void start_blocked(__typeof__(&pthread_create) create,
                          __typeof__(&pthread_sigmask) set_mask,
                          const pthread_attr_t *attributes) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    if (set_mask(SIG_SETMASK, &all, &before) != 0) return;
    create(&thread, attributes, watch, NULL);
    set_mask(SIG_SETMASK, &before, NULL);
}

void watcher_start(void) {
    KEEP_ERRNO;
    pthread_attr_t attributes;
    if (atomic_load_explicit(&started, memory_order_relaxed) || atomic_exchange(&started, true))
        return;
    __typeof__(&pthread_create) create = FOUND(pthread_create);
    __typeof__(&pthread_sigmask) mask = FOUND(pthread_sigmask);
    __typeof__(&pthread_attr_setstacksize) set_size = FOUND(pthread_attr_setstacksize);
    if (!create || !mask || !set_size || pthread_attr_init(&attributes) != 0) return;
    set_size(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    start_blocked(create, mask, &attributes);
    pthread_attr_destroy(&attributes);
}

void watcher_after_fork(void) { atomic_store(&started, false); }
