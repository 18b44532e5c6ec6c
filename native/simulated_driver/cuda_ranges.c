#define _GNU_SOURCE
#include "cuda_ranges.h"

#include <search.h>
#include <stdint.h>
#include <sys/mman.h>

enum { LOW_START = 0x10000000, PAGE = 4096, HUGE_PAGE = 2 << 20 };

static int compare(const void *left, const void *right)
{
    const struct range *a = left, *b = right;
    if (a->base + a->size <= b->base)
        return -1;
    return b->base + b->size <= a->base;
}

bool range_insert(void **tree, struct range *range)
{
    return tsearch(range, tree, compare) != NULL;
}

void range_remove(void **tree, struct range *range)
{
    tdelete(range, tree, compare);
}

void *range_overlapping(void *const *tree, CUdeviceptr base, size_t size)
{
    const struct range key = {base, size};
    if (size == 0 || base + size < base)
        return NULL;
    void *node = tfind(&key, tree, compare);
    return node == NULL ? NULL : *(void **)node;
}

void *range_at(void *const *tree, CUdeviceptr address)
{
    return range_overlapping(tree, address, 1);
}

static void *map(uintptr_t hint, size_t bytes, int protection, int flags)
{
    void *memory = mmap((void *)hint, bytes, protection,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (bytes >= HUGE_PAGE) /* touching one byte must not cost 2 MiB of the host */
        madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

void *addresses_take(size_t bytes, size_t alignment, bool backed)
{
    int protection = backed ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (alignment <= PAGE)
        return map(0, bytes, protection, 0);
    if (bytes + alignment < bytes)
        return NULL;
    char *memory = map(0, bytes + alignment, protection, 0);
    if (memory == NULL)
        return NULL;
    size_t before = -(uintptr_t)memory & (alignment - 1);
    if (before > 0)
        munmap(memory, before);
    munmap(memory + before + bytes, alignment - before);
    return memory + before;
}

void addresses_give_back(CUdeviceptr base, size_t bytes)
{
    munmap((void *)(uintptr_t)base, bytes);
}

void *addresses_take_low(size_t bytes)
{
#ifdef MAP_32BIT
    const int flags = MAP_32BIT;
#else
    const int flags = 0;
#endif
    static uintptr_t hint = LOW_START;
    char *memory = map(hint, bytes, PROT_READ | PROT_WRITE, flags);
    if (memory == NULL)
        return NULL;
    if ((uintptr_t)memory > UINT32_MAX - bytes) {
        munmap(memory, bytes);
        hint = LOW_START;
        return NULL;
    }
    hint = ((uintptr_t)memory + bytes + PAGE - 1) / PAGE * PAGE;
    return memory;
}
