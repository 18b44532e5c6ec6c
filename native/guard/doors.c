#include "doors.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "drivers.h"
#include "elf_symbols.h"
#include "keep_errno.h"
#include "loader.h"
#include "names.h"

typedef void function(void);

struct hook {
    enum entry entry;
    const char *name, *base; /* exported; as cuGetProcAddress knows it, or NULL */
    int since;
    function *function;
};

static const struct hook hooks[] = {
#define HOOK(library, name, base, since) {ENTRY_##name, #name, base, since, (function *)name},
#define ENTRY(library, name)
#include "hooks.def"
#undef HOOK
#undef ENTRY
};
enum { HOOK_COUNT = sizeof hooks / sizeof hooks[0] };

static uintptr_t hook_address(const struct hook *hook) { return (uintptr_t)hook->function; }

static const struct hook *hook_named(const char *name) {
    if (!name || (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvml", 4) != 0)) return NULL;
    names_asked(name);
    for (int i = 0; i < HOOK_COUNT; i++)
        if (strcmp(hooks[i].name, name) == 0) return &hooks[i];
    return NULL;
}

/* What a search for a hooked name may end with: the hook where it met the driver's function, the
 * hook where it met the hook itself and the driver has such a function; else what it met. */
static uintptr_t guarded(const struct hook *hook, uintptr_t met) {
    uintptr_t real = driver_entry(hook->entry);
    if (met == hook_address(hook)) return real ? met : 0;
    return met == real ? hook_address(hook) : met;
}

struct next_search {
    const struct hook *hook;
    uintptr_t caller, answer;
    bool past_caller, met_hook;
};

static bool stop_at_next(const struct elf_object *object, void *context) {
    struct next_search *search = context;
    if (!search->past_caller) {
        search->past_caller = search->caller >= object->low && search->caller < object->high;
        return false;
    }
    uintptr_t met = elf_function(object, search->hook->name);
    if (met == hook_address(search->hook)) search->met_hook = true;
    if (met) search->answer = guarded(search->hook, met);
    return search->answer != 0;
}

static struct resolution answer(uintptr_t address) { return (struct resolution){address, 1}; }

/* The first definition behind the caller in the loader's order. `real` with the program's own
 * return address gives the failure its proper text. */
static struct resolution resolve_next(const struct hook *hook, uintptr_t real, uintptr_t caller) {
    struct next_search search = {.hook = hook, .caller = caller};
    if (elf_visit_objects(stop_at_next, &search)) return answer(search.answer);
    if (search.met_hook) return answer((uintptr_t)loader_dlsym()(RTLD_NEXT, hook->name));
    return (struct resolution){real, 0};
}

/* `met` is what the real look-up found. Where it is a hook for which the driver has nothing, the
 * search goes on behind this library. */
static struct resolution resolve_met(const struct hook *hook, uintptr_t real, uintptr_t met) {
    if (!met) return (struct resolution){real, 0};
    uintptr_t address = guarded(hook, met);
    if (!address) address = (uintptr_t)loader_dlsym()(RTLD_NEXT, hook->name);
    return answer(address);
}

struct resolution doors_resolve_dlsym(void *handle, const char *name, uintptr_t caller) {
    KEEP_ERRNO;
    dlsym_fn *real = loader_dlsym();
    const struct hook *hook = hook_named(name);
    if (!real) return answer(0);
    if (!hook) return (struct resolution){(uintptr_t)real, 0};
    if (handle == RTLD_NEXT) return resolve_next(hook, (uintptr_t)real, caller);
    return resolve_met(hook, (uintptr_t)real, (uintptr_t)real(handle, name));
}

struct resolution doors_resolve_dlvsym(void *handle, const char *name, const char *version,
                                       uintptr_t caller) {
    KEEP_ERRNO;
    dlvsym_fn *real = loader_dlvsym();
    const struct hook *hook = hook_named(name);
    if (!real) return answer(0);
    if (!hook) return (struct resolution){(uintptr_t)real, 0};
    if (handle == RTLD_NEXT) return resolve_next(hook, (uintptr_t)real, caller);
    return resolve_met(hook, (uintptr_t)real, (uintptr_t)real(handle, name, version));
}

/* What cuGetProcAddress hands out for a hook need not be the exported function: asked once. */
static atomic_uintptr_t handed_out[HOOK_COUNT];
static atomic_bool asked;

static cuuint64_t streams_of(const struct hook *hook) {
    const char *tail = strrchr(hook->name, '_');
    bool twin = tail && (strcmp(tail, "_ptsz") == 0 || strcmp(tail, "_ptds") == 0);
    return twin ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
}

static uintptr_t ask_driver(const struct hook *hook) {
    __typeof__(&cuGetProcAddress_v2) ask_v2 =
        (__typeof__(&cuGetProcAddress_v2))driver_entry(ENTRY_cuGetProcAddress_v2);
    __typeof__(&cuGetProcAddress) ask =
        (__typeof__(&cuGetProcAddress))driver_entry(ENTRY_cuGetProcAddress);
    void *address = NULL;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (ask_v2)
        result = ask_v2(hook->base, &address, hook->since, streams_of(hook), NULL);
    else if (ask)
        result = ask(hook->base, &address, hook->since, streams_of(hook));
    return result == CUDA_SUCCESS ? (uintptr_t)address : 0;
}

static void ask_once(void) {
    if (atomic_load_explicit(&asked, memory_order_acquire)) return;
    for (int i = 0; i < HOOK_COUNT; i++) {
        uintptr_t address = hooks[i].base ? ask_driver(&hooks[i]) : 0;
        if (address) driver_learn_entry(hooks[i].entry, address);
        atomic_store_explicit(&handed_out[i], address, memory_order_relaxed);
    }
    atomic_store_explicit(&asked, true, memory_order_release);
}

/* Keyed by the pointer that the driver chose, so its own rules about versions and streams stand. */
static void substitute(void **address) {
    uintptr_t real = (uintptr_t)*address;
    if (!real) return;
    ask_once();
    for (int i = 0; i < HOOK_COUNT; i++)
        if (driver_entry(hooks[i].entry) == real) {
            *address = (void *)hook_address(&hooks[i]);
            return;
        }
    for (int i = 0; i < HOOK_COUNT; i++)
        if (atomic_load_explicit(&handed_out[i], memory_order_relaxed) == real) {
            *address = (void *)hook_address(&hooks[i]);
            return;
        }
}

static CUresult hand_out(CUresult result, const char *symbol, void **address) {
    if (symbol) names_asked(symbol);
    if (result == CUDA_SUCCESS && address) substitute(address);
    return result;
}

EXPORTED CUresult cuGetProcAddress(const char *symbol, void **pfn, int cuda_version,
                                   cuuint64_t flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuGetProcAddress);
    return hand_out(real(symbol, pfn, cuda_version, flags), symbol, pfn);
}

EXPORTED CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cuda_version,
                                      cuuint64_t flags, CUdriverProcAddressQueryResult *status) {
    KEEP_ERRNO;
    REAL_CUDA(cuGetProcAddress_v2);
    return hand_out(real(symbol, pfn, cuda_version, flags, status), symbol, pfn);
}

EXPORTED CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **pfn, int cuda_version,
                                           cuuint64_t flags,
                                           CUdriverProcAddressQueryResult *status) {
    KEEP_ERRNO;
    REAL_CUDA(cuGetProcAddress_v2_ptsz);
    return hand_out(real(symbol, pfn, cuda_version, flags, status), symbol, pfn);
}
