#include "handles.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Held for some instructions only, so whoever finds it taken looks again, and rests if that takes
 * too long: its owner may have been put off the processor. Unlike lock.h's it is let go of by a
 * plain store, which counts on this path. */
struct spin {
    atomic_uint taken;
};

static void rest(void) {
    const struct timespec pause = {.tv_nsec = 20 * 1000};
    nanosleep(&pause, NULL);
}

static inline void spin_take(struct spin *lock) {
    for (int tries = 0; atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire); tries++)
        if (tries > 100) rest();
}

static inline void spin_release(struct spin *lock) {
    atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

enum { SHARD_BITS = 6, SHARDS = 1 << SHARD_BITS, FIRST_ROOM = 32 };

/* Open addressing with linear probing; a removal moves later entries up, so there are no
 * tombstones. `room` is a power of two or zero. */
struct shard {
    struct spin lock;
    uint64_t room, count;
    struct handle *slots;
};

static struct shard shards[SHARDS];

static uint64_t hash(unsigned int kind, uint64_t key) {
    uint64_t mixed = (key ^ ((uint64_t)kind << 56)) * 0x9e3779b97f4a7c15u;
    return mixed ^ (mixed >> 32);
}

static struct shard *shard_of(uint64_t hash) { return &shards[hash & (SHARDS - 1)]; }

static uint64_t home(const struct shard *shard, const struct handle *handle) {
    return (hash(handle->kind, handle->key) >> SHARD_BITS) & (shard->room - 1);
}

/* The place of a key, or the empty one where it would go. The shard has room. */
static struct handle *probe(struct shard *shard, unsigned int kind, uint64_t key) {
    uint64_t at = (hash(kind, key) >> SHARD_BITS) & (shard->room - 1);
    while (shard->slots[at].kind != NO_HANDLE &&
           (shard->slots[at].key != key || shard->slots[at].kind != kind))
        at = (at + 1) & (shard->room - 1);
    return &shard->slots[at];
}

static struct handle *lookup(struct shard *shard, unsigned int kind, uint64_t key) {
    if (!shard->count) return NULL;
    struct handle *place = probe(shard, kind, key);
    return place->kind == NO_HANDLE ? NULL : place;
}

static bool grow(struct shard *shard) {
    struct shard grown = {.room = shard->room ? shard->room * 2 : FIRST_ROOM};
    grown.slots = mmap(NULL, grown.room * sizeof *grown.slots, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (grown.slots == MAP_FAILED) return false;
    for (uint64_t i = 0; i < shard->room; i++) {
        const struct handle *old = &shard->slots[i];
        if (old->kind != NO_HANDLE) *probe(&grown, old->kind, old->key) = *old;
    }
    if (shard->room) munmap(shard->slots, shard->room * sizeof *shard->slots);
    shard->room = grown.room;
    shard->slots = grown.slots;
    return true;
}

/* Whether an entry whose search begins at `from` may stand at `gap` although it is at `at` now. */
static bool may_move(uint64_t from, uint64_t gap, uint64_t at, uint64_t mask) {
    return ((at - from) & mask) >= ((at - gap) & mask);
}

static void remove_at(struct shard *shard, struct handle *place) {
    uint64_t mask = shard->room - 1, gap = (uint64_t)(place - shard->slots);
    for (uint64_t at = (gap + 1) & mask; shard->slots[at].kind != NO_HANDLE; at = (at + 1) & mask)
        if (may_move(home(shard, &shard->slots[at]), gap, at, mask)) {
            shard->slots[gap] = shard->slots[at];
            gap = at;
        }
    shard->slots[gap].kind = NO_HANDLE;
    shard->count--;
}

/* Field by field: a wide load of what was stored in parts a moment ago would wait for the stores,
 * which counts on this path. */
#define FILL(field)                                \
    do {                                           \
        to->field = from->field;                   \
        atomic_signal_fence(memory_order_seq_cst); \
    } while (0)

static void fill(struct handle *to, const struct handle *from) {
    FILL(key);
    FILL(owner);
    FILL(span);
    FILL(charge.bytes);
    FILL(charge.share);
    FILL(charge.parts);
    FILL(charge.part_count);
    FILL(charge.kind);
    FILL(kind);
    FILL(doomed);
}

bool handles_add(const struct handle *handle, struct handle *stale) {
    struct shard *shard = shard_of(hash(handle->kind, handle->key));
    stale->kind = NO_HANDLE;
    spin_take(&shard->lock);
    bool fits = (shard->count + 1) * 4 <= shard->room * 3 || grow(shard);
    if (fits) {
        struct handle *place = probe(shard, handle->kind, handle->key);
        if (place->kind == NO_HANDLE)
            shard->count++;
        else
            *stale = *place;
        fill(place, handle);
    }
    spin_release(&shard->lock);
    return fits;
}

bool handles_find(enum handle_kind kind, uint64_t key, struct handle *found) {
    struct shard *shard = shard_of(hash(kind, key));
    spin_take(&shard->lock);
    const struct handle *place = lookup(shard, kind, key);
    if (place) *found = *place;
    spin_release(&shard->lock);
    return place != NULL;
}

bool handles_take(enum handle_kind kind, uint64_t key, struct handle *taken) {
    struct shard *shard = shard_of(hash(kind, key));
    spin_take(&shard->lock);
    struct handle *place = lookup(shard, kind, key);
    if (place) {
        *taken = *place;
        remove_at(shard, place);
    }
    spin_release(&shard->lock);
    return place != NULL;
}

static bool covers(const struct handle *handle, uint64_t address, uint64_t bytes) {
    (void)bytes;
    return address - handle->key < handle->span;
}

static bool lies_within(const struct handle *handle, uint64_t address, uint64_t bytes) {
    return handle->key - address < bytes;
}

static bool find_any(bool (*fits)(const struct handle *, uint64_t, uint64_t),
                     enum handle_kind kind, uint64_t address, uint64_t bytes,
                     struct handle *found) {
    bool met = false;
    for (int s = 0; !met && s < SHARDS; s++) {
        spin_take(&shards[s].lock);
        for (uint64_t i = 0; !met && i < shards[s].room; i++) {
            const struct handle *handle = &shards[s].slots[i];
            met = handle->kind == kind && fits(handle, address, bytes);
            if (met) *found = *handle;
        }
        spin_release(&shards[s].lock);
    }
    return met;
}

bool handles_find_covering(enum handle_kind kind, uint64_t address, struct handle *found) {
    return find_any(covers, kind, address, 0, found);
}

bool handles_find_within(enum handle_kind kind, uint64_t address, uint64_t bytes,
                         struct handle *found) {
    return find_any(lies_within, kind, address, bytes, found);
}

static bool is_of(const struct handle *handle, const void *owner) {
    return (handle->kind == MEMORY || handle->kind == ARRAY) && handle->owner == owner;
}

static void mark(const void *owner, bool doomed) {
    for (int s = 0; s < SHARDS; s++) {
        spin_take(&shards[s].lock);
        for (uint64_t i = 0; i < shards[s].room; i++) {
            struct handle *handle = &shards[s].slots[i];
            if (is_of(handle, owner)) handle->doomed = doomed;
        }
        spin_release(&shards[s].lock);
    }
}

void handles_doom(const void *owner) { mark(owner, true); }
void handles_spare(const void *owner) { mark(owner, false); }

static void return_doomed(struct shard *shard, const void *owner) {
    for (uint64_t i = 0; i < shard->room;) {
        struct handle *handle = &shard->slots[i];
        if (handle->doomed && is_of(handle, owner)) {
            account_return(&handle->charge);
            remove_at(shard, handle); /* another may have moved here */
        } else {
            i++;
        }
    }
}

void handles_return_doomed(const void *owner) {
    for (int s = 0; s < SHARDS; s++) {
        spin_take(&shards[s].lock);
        return_doomed(&shards[s], owner);
        spin_release(&shards[s].lock);
    }
}

void handles_after_fork(void) {
    for (int s = 0; s < SHARDS; s++) shards[s] = (struct shard){0};
}
