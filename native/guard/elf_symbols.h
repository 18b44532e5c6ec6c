/* Symbols of loaded objects, read from their own tables: no dlsym, so no recursion and no change
 * of what dlerror would say. */
#ifndef CASABA_ELF_SYMBOLS_H
#define CASABA_ELF_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct elf_object {
    const char *path;   /* as the loader found it; "" for the program itself */
    const char *soname; /* or NULL */
    uintptr_t base, low, high; /* load bias; the addresses it covers */
    const ElfW(Sym) *symbols;
    const char *strings;
    const uint32_t *gnu_hash, *sysv_hash; /* one may be NULL */
    const uint16_t *versions;             /* or NULL */
};

/* Calls `visit` for the loaded objects in the loader's order until it returns true. */
bool elf_visit_objects(bool (*visit)(const struct elf_object *object, void *context),
                       void *context);

/* The address of a function that the object defines, of its default version; 0: none. */
uintptr_t elf_function(const struct elf_object *object, const char *name);

#endif
