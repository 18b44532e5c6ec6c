#include "elf_symbols.h"

#include <string.h>

/* The loader relocates addresses in the dynamic section of all objects but the vDSO. */
static const void *dynamic_address(uintptr_t base, uintptr_t value) {
    return (const void *)(value < base ? base + value : value);
}

static void read_dynamic(struct elf_object *object, const ElfW(Dyn) *dynamic) {
    uintptr_t soname = 0;
    bool named = false;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *address = dynamic_address(object->base, dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_SYMTAB: object->symbols = address; break;
        case DT_STRTAB: object->strings = address; break;
        case DT_GNU_HASH: object->gnu_hash = address; break;
        case DT_HASH: object->sysv_hash = address; break;
        case DT_VERSYM: object->versions = address; break;
        case DT_SONAME: soname = dynamic->d_un.d_val; named = true; break;
        default: break;
        }
    }
    if (named && object->strings) object->soname = object->strings + soname;
}

static void read_object(struct elf_object *object, const struct dl_phdr_info *loaded) {
    *object = (struct elf_object){
        .path = loaded->dlpi_name, .base = loaded->dlpi_addr, .low = UINTPTR_MAX};
    for (int i = 0; i < loaded->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &loaded->dlpi_phdr[i];
        uintptr_t start = object->base + header->p_vaddr;
        if (header->p_type == PT_LOAD) {
            if (start < object->low) object->low = start;
            if (start + header->p_memsz > object->high) object->high = start + header->p_memsz;
        } else if (header->p_type == PT_DYNAMIC) {
            read_dynamic(object, (const ElfW(Dyn) *)start);
        }
    }
}

struct visit {
    bool (*visit)(const struct elf_object *object, void *context);
    void *context;
};

static int visit_loaded(struct dl_phdr_info *loaded, size_t size, void *argument) {
    (void)size;
    const struct visit *visit = argument;
    struct elf_object object;
    read_object(&object, loaded);
    return visit->visit(&object, visit->context);
}

bool elf_visit_objects(bool (*visit)(const struct elf_object *, void *), void *context) {
    struct visit argument = {visit, context};
    return dl_iterate_phdr(visit_loaded, &argument) != 0;
}

/* The address of symbol number `index` if it defines this function. An old version of a symbol
 * (hidden bit) counts too: the functions looked for here never changed their meaning. */
static uintptr_t defined(const struct elf_object *object, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &object->symbols[index];
    if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) return 0;
    if (strcmp(object->strings + symbol->st_name, name) != 0) return 0;
    return object->base + symbol->st_value;
}

static bool old_version(const struct elf_object *object, uint32_t index) {
    return object->versions && (object->versions[index] & 0x8000);
}

static uintptr_t find_gnu(const struct elf_object *object, const char *name) {
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++) hash = hash * 33 + (unsigned char)*c;
    const uint32_t *header = object->gnu_hash;
    uint32_t bucket_count = header[0], first = header[1], bloom_words = header[2];
    const uint32_t *buckets = header + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chains = buckets + bucket_count;
    uint32_t index = bucket_count ? buckets[hash % bucket_count] : 0;
    if (index < first || index == 0) return 0;
    uintptr_t older = 0;
    for (;; index++) {
        uint32_t word = chains[index - first];
        if ((word | 1) == (hash | 1)) {
            uintptr_t address = defined(object, index, name);
            if (address && !old_version(object, index)) return address;
            if (address) older = address;
        }
        if (word & 1) return older;
    }
}

static uintptr_t find_sysv(const struct elf_object *object, const char *name) {
    uint32_t hash = 0;
    for (const char *c = name; *c; c++) {
        hash = (hash << 4) + (unsigned char)*c;
        uint32_t high = hash & 0xf0000000u;
        hash = (hash ^ (high >> 24)) & ~high;
    }
    uint32_t bucket_count = object->sysv_hash[0];
    const uint32_t *buckets = object->sysv_hash + 2, *chains = buckets + bucket_count;
    uintptr_t older = 0;
    for (uint32_t index = buckets[hash % bucket_count]; index; index = chains[index]) {
        uintptr_t address = defined(object, index, name);
        if (address && !old_version(object, index)) return address;
        if (address) older = address;
    }
    return older;
}

uintptr_t elf_function(const struct elf_object *object, const char *name) {
    if (!object->symbols || !object->strings) return 0;
    if (object->gnu_hash) return find_gnu(object, name);
    return object->sysv_hash && object->sysv_hash[0] ? find_sysv(object, name) : 0;
}
