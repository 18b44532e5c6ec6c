/* A libcuda that only looks up: it passes cuGetProcAddress_v2 on to the driver of $RECORDED and
 * writes each answer to stderr, and each question for an export table. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int proc_address(const char *name, void **address, int version, uint64_t flags,
                         int *status);
typedef int export_table(const void **table, const void *id);

static void *find(const char *name)
{
    static void *driver;
    if (driver == NULL)
        driver = dlopen(getenv("RECORDED"), RTLD_NOW | RTLD_LOCAL);
    return driver == NULL ? NULL : dlsym(driver, name);
}

int cuDriverGetVersion(int *version)
{
    int (*real)(int *version) = NULL;
    void *address = find("cuDriverGetVersion");
    memcpy(&real, &address, sizeof real);
    return real(version);
}

int cuGetExportTable(const void **table, const void *id)
{
    export_table *real = NULL;
    void *address = find("cuGetExportTable");
    memcpy(&real, &address, sizeof real);
    fputs("table\n", stderr);
    return real(table, id);
}

int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status)
{
    proc_address *real = NULL;
    void *found = find("cuGetProcAddress_v2");
    memcpy(&real, &found, sizeof real);
    int result = real(name, address, version, flags, status);
    fprintf(stderr, "symbol %s %d %d %d\n", name, version, (int)flags, result);
    export_table *table = cuGetExportTable;
    proc_address *lookup = cuGetProcAddress_v2;
    if (result == 0 && strcmp(name, "cuGetExportTable") == 0)
        memcpy(address, &table, sizeof table);
    if (result == 0 && strcmp(name, "cuGetProcAddress") == 0 && version >= 12000)
        memcpy(address, &lookup, sizeof lookup);
    return result;
}
