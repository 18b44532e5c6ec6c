#include "shared_file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "message.h"

static bool check_size(const char *path, int descriptor, uint32_t wanted) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        message_refusal(path, "cannot be examined: %s; " SHARED_FILE_REMEDY, strerror(errno));
        return false;
    }
    if (S_ISREG(status.st_mode) && status.st_size >= wanted) return true;
    message_refusal(path, "a file of %lld bytes, wanted a regular file of %u; " SHARED_FILE_REMEDY,
                    (long long)status.st_size, wanted);
    return false;
}

static bool check_header(const char *path, const struct shared_header *found,
                         const struct shared_header *wanted) {
    if (found->magic != wanted->magic)
        message_refusal(path, "magic 0x%08x, wanted 0x%08x; " SHARED_FILE_REMEDY, found->magic,
                        wanted->magic);
    else if (found->version != wanted->version)
        message_refusal(path,
                        "version %u, wanted %u: node agent and guard are of different releases; "
                        "bring both to one release, then " SHARED_FILE_REMEDY,
                        found->version, wanted->version);
    else if (found->size != wanted->size)
        message_refusal(path, "size word %u, wanted %u; " SHARED_FILE_REMEDY, found->size,
                        wanted->size);
    else
        return true;
    return false;
}

void *shared_file_map(const char *path, int descriptor, bool writable,
                      const struct shared_header *wanted) {
    if (!check_size(path, descriptor, wanted->size)) return NULL;
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *mapped = mmap(NULL, wanted->size, protection, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) {
        message_refusal(path, "cannot be mapped: %s; raise the memory limits of the process",
                        strerror(errno));
        return NULL;
    }
    if (check_header(path, mapped, wanted)) return mapped;
    munmap(mapped, wanted->size);
    return NULL;
}
