#include "loader.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "elf_symbols.h"

typedef void *dlopen_fn(const char *path, int flags);

struct search {
    const char *name;
    uintptr_t address;
};

static bool stop_at_definition(const struct elf_object *object, void *context) {
    struct search *search = context;
    const char *soname = object->soname;
    if (!soname || (strcmp(soname, "libc.so.6") != 0 && strcmp(soname, "libdl.so.2") != 0))
        return false;
    search->address = elf_function(object, search->name);
    return search->address != 0;
}

static uintptr_t find(const char *name) {
    struct search search = {.name = name};
    elf_visit_objects(stop_at_definition, &search);
    return search.address;
}

static uintptr_t find_once(atomic_uintptr_t *known, const char *name) {
    uintptr_t address = atomic_load_explicit(known, memory_order_relaxed);
    if (!address) {
        address = find(name);
        atomic_store_explicit(known, address, memory_order_relaxed);
    }
    return address;
}

dlsym_fn *loader_dlsym(void) {
    static atomic_uintptr_t known;
    return (dlsym_fn *)find_once(&known, "dlsym");
}

dlvsym_fn *loader_dlvsym(void) {
    static atomic_uintptr_t known;
    return (dlvsym_fn *)find_once(&known, "dlvsym");
}

void loader_pin(const char *path) {
    dlopen_fn *open = (dlopen_fn *)find("dlopen");
    if (open) open(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
