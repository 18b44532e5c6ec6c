#include "drivers.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "elf_symbols.h"
#include "loader.h"

static const struct {
    enum library library;
    const char *name;
} entries[ENTRY_COUNT] = {
#define HOOK(library, name, base, since) {library, #name},
#define ENTRY(library, name) {library, #name},
#include "hooks.def"
#undef HOOK
#undef ENTRY
};

/* A driver library is known by its file name or soname, with or without a version behind it, and
 * by one function that none is without. */
static const struct {
    const char *file, *proof;
} libraries[LIBRARY_COUNT] = {
    [CUDA] = {"libcuda.so", "cuInit"},
    [NVML] = {"libnvidia-ml.so", "nvmlInit_v2"},
};

atomic_uintptr_t driver_addresses[ENTRY_COUNT];
static atomic_bool adopted[LIBRARY_COUNT];

static bool is_file(const char *name, const char *file) {
    size_t length = strlen(file);
    return name && strncmp(name, file, length) == 0 && (name[length] == 0 || name[length] == '.');
}

static bool is_library(const struct elf_object *object, enum library library) {
    const char *file = libraries[library].file, *slash = strrchr(object->path, '/');
    bool named = is_file(slash ? slash + 1 : object->path, file) || is_file(object->soname, file);
    return named && elf_function(object, libraries[library].proof);
}

struct search {
    enum library library;
    struct elf_object found;
};

static bool stop_at_library(const struct elf_object *object, void *context) {
    struct search *search = context;
    if (!is_library(object, search->library)) return false;
    search->found = *object;
    return true;
}

/* Two threads may do this at once: they store the same values. */
static bool adopt(enum library library) {
    struct search search = {.library = library};
    if (!elf_visit_objects(stop_at_library, &search)) return false;
    loader_pin(search.found.path); /* the addresses are kept for ever */
    for (int i = 0; i < ENTRY_COUNT; i++)
        if (entries[i].library == library)
            atomic_store(&driver_addresses[i], elf_function(&search.found, entries[i].name));
    atomic_store(&adopted[library], true);
    return true;
}

static bool is_adopted(enum library library) {
    return atomic_load_explicit(&adopted[library], memory_order_acquire) || adopt(library);
}

uintptr_t driver_find_entry(enum entry entry) {
    if (!is_adopted(entries[entry].library)) return 0;
    return atomic_load_explicit(&driver_addresses[entry], memory_order_relaxed);
}

void driver_learn_entry(enum entry entry, uintptr_t address) {
    uintptr_t none = 0;
    atomic_compare_exchange_strong(&driver_addresses[entry], &none, address);
}

CUresult driver_absent_cuda(void) {
    return is_adopted(CUDA) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NO_DEVICE;
}

nvmlReturn_t driver_absent_nvml(void) {
    return is_adopted(NVML) ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_ERROR_LIBRARY_NOT_FOUND;
}
