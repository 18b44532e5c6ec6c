#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "message.h"
#include "shared_file.h"

static int open_file(const char *path) {
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0)
        message_refusal(path, "cannot be opened for writing: %s; " SHARED_FILE_REMEDY,
                        strerror(errno));
    return descriptor;
}

struct region_file *region_map(const char *path, struct stat *identity) {
    const struct shared_header wanted = {REGION_MAGIC, REGION_VERSION, REGION_SIZE};
    int descriptor = open_file(path);
    if (descriptor < 0) return NULL;
    void *mapped = shared_file_map(path, descriptor, true, &wanted);
    if (mapped && fstat(descriptor, identity) != 0) *identity = (struct stat){0};
    close(descriptor);
    return mapped;
}

int region_open(const char *path, const struct stat *identity) {
    struct stat found;
    int descriptor = open_file(path);
    if (descriptor < 0) return -1;
    if (fstat(descriptor, &found) == 0 && found.st_dev == identity->st_dev &&
        found.st_ino == identity->st_ino)
        return descriptor;
    message_refusal(path, "was replaced by another file; " SHARED_FILE_REMEDY);
    close(descriptor);
    return -1;
}

static bool set_lock(int descriptor, int slot, short type) {
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = REGION_LOCK_BASE + slot, .l_len = 1};
    return fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

static unsigned int high_water(const struct region_file *region) {
    uint32_t mark = atomic_load_explicit(&region->high_water, memory_order_seq_cst);
    return mark < REGION_SLOTS ? mark : REGION_SLOTS;
}

static void raise_high_water(struct region_file *region, uint32_t mark) {
    uint32_t seen = atomic_load(&region->high_water);
    while (seen < mark && !atomic_compare_exchange_weak(&region->high_water, &seen, mark)) {
    }
}

static bool is_charged(const struct region_file *region, int slot) {
    for (int card = 0; card < REGION_MAX_CARDS; card++)
        if (atomic_load_explicit(&region->cards[card].asked[slot], memory_order_relaxed) ||
            atomic_load_explicit(&region->cards[card].overhead[slot], memory_order_relaxed))
            return true;
    return false;
}

/* Only by who holds the slot's lock. */
static void clear_slot(struct region_file *region, int slot) {
    for (int card = 0; card < REGION_MAX_CARDS; card++) {
        atomic_store(&region->cards[card].asked[slot], 0);
        atomic_store(&region->cards[card].overhead[slot], 0);
    }
    atomic_store(&region->slots[slot].pid, 0);
    atomic_store(&region->slots[slot].refusals, 0);
}

static uint64_t boot_time_ns(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sign_slot(struct region_file *region, int slot) {
    atomic_store(&region->slots[slot].start_time_ns, boot_time_ns());
    atomic_store(&region->slots[slot].guard_version, GUARD_VERSION);
    atomic_store(&region->slots[slot].pid, (uint64_t)getpid());
}

int region_take_slot(int descriptor, struct region_file *region) {
    for (int slot = 0; slot < REGION_SLOTS; slot++) {
        if (!set_lock(descriptor, slot, F_WRLCK)) continue;
        clear_slot(region, slot);
        sign_slot(region, slot);
        raise_high_water(region, (uint32_t)slot + 1);
        return slot;
    }
    return NO_SLOT;
}

void region_sweep(int descriptor, struct region_file *region, int own) {
    for (int slot = 0; slot < (int)high_water(region); slot++) {
        if (slot == own || !is_charged(region, slot)) continue;
        if (!set_lock(descriptor, slot, F_WRLCK)) continue;
        clear_slot(region, slot);
        set_lock(descriptor, slot, F_UNLCK);
    }
}

uint64_t region_sum(const struct region_file *region, const atomic_u64 *words) {
    uint64_t sum = 0;
    unsigned int mark = high_water(region);
    for (unsigned int slot = 0; slot < mark; slot++) {
        uint64_t word = atomic_load_explicit(&words[slot], memory_order_seq_cst);
        sum = sum + word < sum ? UINT64_MAX : sum + word;
    }
    return sum;
}
