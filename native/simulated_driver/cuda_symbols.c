/* cuGetProcAddress over the one table of entry points. */
#include <string.h>

#include "cuda_driver.h"

/* Declared apart from their prototypes, which do not matter here. */
#define EXPORT(base, version, symbol) extern void unsupported_##symbol(void) __asm__(#symbol);
#define TWIN EXPORT
#include "cuda_unsupported.def"
#undef EXPORT
#undef TWIN

static const struct entry {
    const char *base;
    int version;
    bool per_thread;
    void (*address)(void);
} entries[] = {
#define EXPORT(base, version, symbol) {#base, version, false, (void (*)(void))symbol},
#define TWIN(base, version, symbol) {#base, version, true, (void (*)(void))symbol},
#include "cuda_exports.def"
#undef EXPORT
#undef TWIN
#define EXPORT(base, version, symbol) {#base, version, false, unsupported_##symbol},
#define TWIN(base, version, symbol) {#base, version, true, unsupported_##symbol},
#include "cuda_unsupported.def"
#undef EXPORT
#undef TWIN
};

enum { ENTRY_COUNT = sizeof entries / sizeof entries[0], VERSION_UNKNOWN = 1 << 30 };

/* The newest entry of that base name, up to `version`, of one kind. */
static const struct entry *newest(const char *base, int version, bool per_thread, bool *known)
{
    const struct entry *best = NULL;
    for (int i = 0; i < ENTRY_COUNT; i++) {
        const struct entry *entry = &entries[i];
        if (entry->per_thread != per_thread || strcmp(entry->base, base) != 0)
            continue;
        *known = true;
        if (entry->version <= version && (best == NULL || best->version < entry->version))
            best = entry;
    }
    return best;
}

/* An older driver does not know what came after it. */
static int newest_known(int asked)
{
    int own = VERSION_UNKNOWN;
    cuDriverGetVersion(&own);
    return asked < own ? asked : own;
}

static CUdriverProcAddressQueryResult find(const char *base, void **address, int version,
                                           cuuint64_t flags)
{
    bool known = false;
    const struct entry *entry = NULL;
    version = newest_known(version);
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        entry = newest(base, version, true, &known);
    if (entry == NULL)
        entry = newest(base, version, false, &known);
    if (entry == NULL)
        return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    memcpy(address, &entry->address, sizeof *address);
    return CU_GET_PROC_ADDRESS_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    const cuuint64_t streams =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (symbol == NULL || pfn == NULL || (flags & ~streams) != 0 || flags == streams)
        return CUDA_ERROR_INVALID_VALUE;
    *pfn = NULL;
    CUdriverProcAddressQueryResult found = find(symbol, pfn, cuda_version, flags);
    if (status != NULL)
        *status = found;
    return found == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Per-thread default streams are what flags 0 means here. */
CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **pfn, int cuda_version,
                                  cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    if (flags == CU_GET_PROC_ADDRESS_DEFAULT)
        flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    return cuGetProcAddress_v2(symbol, pfn, cuda_version, flags, status);
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cuda_version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, pfn, cuda_version, flags, NULL);
}

/* The tables are undocumented; a program that needs them is for real cards. */
CUresult cuGetExportTable(const void **table, const CUuuid *table_id)
{
    if (table == NULL || table_id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
