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

static bool set_byte(int descriptor, off_t byte, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

/* Whether nobody else has a lock there. */
static bool is_free(int descriptor, off_t byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

static bool set_lock(int descriptor, int slot, short type) {
    return set_byte(descriptor, REGION_LOCK_BASE + slot, type);
}

bool region_keep(int descriptor, int slot, bool keep) {
    return set_byte(descriptor, REGION_KEEP_BASE + slot, keep ? F_RDLCK : F_UNLCK);
}

bool region_is_kept(int descriptor, int slot) {
    return !is_free(descriptor, REGION_KEEP_BASE + slot);
}

bool region_is_dead(int descriptor, int slot) {
    return is_free(descriptor, REGION_LOCK_BASE + slot);
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

static uint64_t slot_of(uint64_t export) { return export & (REGION_SLOTS - 1); }

static void clear_exports(struct region_file *region, int slot) {
    for (int i = 0; i < REGION_EXPORTS; i++) {
        uint64_t word = atomic_load_explicit(&region->exports[i], memory_order_relaxed);
        if (word && slot_of(word) == (uint64_t)slot)
            atomic_compare_exchange_strong(&region->exports[i], &word, 0);
    }
}

/* Only by who holds the slot's lock. */
static void clear_slot(struct region_file *region, int slot) {
    for (int card = 0; card < REGION_MAX_CARDS; card++) {
        atomic_store(&region->cards[card].asked[slot], 0);
        atomic_store(&region->cards[card].overhead[slot], 0);
    }
    clear_exports(region, slot);
    for (int kind = 0; kind < REGION_KINDS; kind++)
        atomic_store(&region->slots[slot].kinds[kind], 0);
    atomic_store(&region->slots[slot].pid, 0);
    atomic_store(&region->slots[slot].refusals, 0);
    atomic_store(&region->slots[slot].peak, 0);
    atomic_store(&region->slots[slot].unknown_names, 0);
    atomic_store(&region->slots[slot].gpu_time_ns, 0);
    atomic_store(&region->slots[slot].wait_ns, 0);
    atomic_store(&region->slots[slot].last_launch_ns, 0);
    atomic_store(&region->slots[slot].launches, 0);
}

/* Only by who holds the slot's lock. False: somebody keeps it, or is about to. */
static bool clear_if_unkept(int descriptor, struct region_file *region, int slot) {
    if (!set_byte(descriptor, REGION_KEEP_BASE + slot, F_WRLCK)) return false;
    clear_slot(region, slot);
    set_byte(descriptor, REGION_KEEP_BASE + slot, F_UNLCK);
    return true;
}

static uint64_t boot_time_ns(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Containers that share a budget have equal PIDs: the number says which PID it is. 0: no /proc. */
static uint64_t pid_namespace(void) {
    struct stat status;
    int descriptor = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    bool known = fstat(descriptor, &status) == 0;
    close(descriptor);
    return known ? (uint64_t)status.st_ino : 0;
}

static void sign_slot(struct region_file *region, int slot) {
    atomic_store(&region->slots[slot].start_time_ns, boot_time_ns());
    atomic_store(&region->slots[slot].guard_version, GUARD_VERSION);
    atomic_store(&region->slots[slot].pid_namespace, pid_namespace());
    atomic_store(&region->slots[slot].pid, (uint64_t)getpid());
}

int region_take_slot(int descriptor, struct region_file *region) {
    for (int slot = 0; slot < REGION_SLOTS; slot++) {
        if (!set_lock(descriptor, slot, F_WRLCK)) continue;
        if (!clear_if_unkept(descriptor, region, slot)) {
            set_lock(descriptor, slot, F_UNLCK);
            continue;
        }
        sign_slot(region, slot);
        raise_high_water(region, (uint32_t)slot + 1);
        return slot;
    }
    return NO_SLOT;
}

void region_sweep(int descriptor, struct region_file *region, int own,
                  const unsigned int keeps[REGION_SLOTS]) {
    for (int slot = 0; slot < (int)region_high_water(region); slot++) {
        if (slot == own || keeps[slot] || !is_charged(region, slot)) continue;
        if (!set_lock(descriptor, slot, F_WRLCK)) continue;
        clear_if_unkept(descriptor, region, slot);
        set_lock(descriptor, slot, F_UNLCK);
    }
}

static bool has_export(const struct region_file *region, uint64_t word) {
    int i = 0;
    while (i < REGION_EXPORTS && atomic_load(&region->exports[i]) != word) i++;
    return i < REGION_EXPORTS;
}

void region_add_export(struct region_file *region, uint64_t word) {
    bool added = has_export(region, word);
    for (int i = 0; !added && i < REGION_EXPORTS; i++) {
        uint64_t none = 0;
        added = atomic_compare_exchange_strong(&region->exports[i], &none, word);
    }
}

void region_remove_export(struct region_file *region, uint64_t word) {
    for (int i = 0; i < REGION_EXPORTS; i++) {
        uint64_t seen = word;
        atomic_compare_exchange_strong(&region->exports[i], &seen, 0);
    }
}

int region_find_export(const struct region_file *region, uint64_t identity) {
    for (int i = 0; i < REGION_EXPORTS; i++) {
        uint64_t word = atomic_load(&region->exports[i]);
        if (word && word / REGION_SLOTS == identity) return (int)slot_of(word);
    }
    return NO_SLOT;
}
