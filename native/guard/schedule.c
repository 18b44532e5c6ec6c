#include "schedule.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pacing.h"

enum {
    FIRST_DESCRIPTOR = 3,
    TABLE_TRIES = 20,
    READ_BYTES = offsetof(struct schedule_file, unused)
};
static const uint64_t GIVEN_UP_STALE_NS = 3 * 1000 * 1000;

/* FNV-1a, 64 bits; never 0. */
static uint64_t hash_text(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ? hash : 1;
}

/* Where the last `count` parts of a path begin. */
static const char *last_parts(const char *path, int count) {
    const char *at = path + strlen(path);
    while (at > path && count > 0)
        if (*--at == '/' && --count == 0) return at + 1;
    return at;
}

void schedule_name(struct schedule *schedule, const char *budget_folder, const uint8_t uuid[16]) {
    *schedule = (struct schedule){.descriptor = -1, .tenant = NO_TENANT};
    schedule->id = hash_text(last_parts(budget_folder, 2));
    int run_bytes = (int)(last_parts(budget_folder, 3) - budget_folder);
    int at = snprintf(schedule->path, sizeof schedule->path, "%.*s%s/GPU-", run_bytes,
                      budget_folder, PATH_GPUS);
    for (int i = 0; i < 16 && at > 0 && at < (int)sizeof schedule->path; i++)
        at += snprintf(schedule->path + at, sizeof schedule->path - (size_t)at, "%s%02x",
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static bool is_ours(const struct schedule *schedule) {
    struct stat status;
    return schedule->descriptor >= 0 && fstat(schedule->descriptor, &status) == 0 &&
           status.st_dev == schedule->identity.st_dev && status.st_ino == schedule->identity.st_ino;
}

static bool set_lock(const struct schedule *schedule, int byte, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(schedule->descriptor, F_OFD_SETLK, &lock) == 0;
}

/* Whether any other process holds a lock on a byte. */
static bool is_locked(const struct schedule *schedule, int byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(schedule->descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static bool read_file(const struct schedule *schedule, struct schedule_file *view) {
    return pread(schedule->descriptor, view, READ_BYTES, 0) == READ_BYTES &&
           view->magic == SCHEDULE_MAGIC && view->version == SCHEDULE_VERSION &&
           view->size == SCHEDULE_SIZE;
}

static off_t place_of(int tenant) {
    return (off_t)(offsetof(struct schedule_file, tenants) +
                   (size_t)tenant * sizeof(struct schedule_tenant));
}

static bool write_record(const struct schedule *schedule, const struct schedule_tenant *record) {
    return pwrite(schedule->descriptor, record, sizeof *record, place_of(schedule->tenant)) ==
           (ssize_t)sizeof *record;
}

/* A tenant that keeps the table locked only makes the others do without it. */
static bool lock_table(const struct schedule *schedule) {
    for (int i = 0; i < TABLE_TRIES; i++)
        if (set_lock(schedule, SCHEDULE_LOCK_TABLE, F_WRLCK)) return true;
    return false;
}

static void unlock_table(const struct schedule *schedule) {
    set_lock(schedule, SCHEDULE_LOCK_TABLE, F_UNLCK);
}

static bool open_file(struct schedule *schedule) {
    schedule->holds_lease = false;
    schedule->tenant = NO_TENANT;
    schedule->descriptor = open(schedule->path, O_RDWR | O_CLOEXEC);
    if (schedule->descriptor >= 0 && schedule->descriptor < FIRST_DESCRIPTOR) {
        int standard = schedule->descriptor; /* where the program itself may still write to */
        schedule->descriptor = fcntl(standard, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
        close(standard);
    }
    return schedule->descriptor >= 0 && fstat(schedule->descriptor, &schedule->identity) == 0;
}

/* Own record from an earlier process of this tenant, else one whose processes are all gone. */
static int find_place(const struct schedule *schedule, const struct schedule_file *view) {
    for (int i = 0; i < SCHEDULE_TENANTS; i++)
        if (view->tenants[i].id == schedule->id) return i;
    for (int i = 0; i < SCHEDULE_TENANTS; i++)
        if (!is_locked(schedule, SCHEDULE_LOCK_TENANT + i)) return i;
    return NO_TENANT;
}

static bool sign_in(struct schedule *schedule, struct schedule_file *view) {
    if (!lock_table(schedule)) return false;
    int place = read_file(schedule, view) ? find_place(schedule, view) : NO_TENANT;
    if (place != NO_TENANT && schedule->tenant != NO_TENANT && place != schedule->tenant)
        set_lock(schedule, SCHEDULE_LOCK_TENANT + schedule->tenant, F_UNLCK);
    schedule->tenant = NO_TENANT;
    if (place != NO_TENANT && set_lock(schedule, SCHEDULE_LOCK_TENANT + place, F_RDLCK)) {
        struct schedule_tenant *record = &view->tenants[place];
        if (record->id != schedule->id) *record = (struct schedule_tenant){.id = schedule->id};
        record->weight = schedule->weight;
        record->cores = schedule->cores;
        schedule->tenant = place;
        write_record(schedule, record);
    }
    unlock_table(schedule);
    return schedule->tenant != NO_TENANT;
}

static bool is_signed_in(const struct schedule *schedule, const struct schedule_file *view) {
    if (schedule->tenant == NO_TENANT) return false;
    const struct schedule_tenant *record = &view->tenants[schedule->tenant];
    return record->id == schedule->id && record->weight == schedule->weight &&
           record->cores == schedule->cores;
}

static bool join_view(struct schedule *schedule, struct schedule_file *view) {
    if (!is_ours(schedule) && !open_file(schedule)) return false;
    return read_file(schedule, view) &&
           (is_signed_in(schedule, view) || sign_in(schedule, view));
}

bool schedule_join(struct schedule *schedule, bool *others) {
    struct schedule_file view;
    *others = false;
    if (!join_view(schedule, &view)) return false;
    for (int i = 0; i < SCHEDULE_TENANTS && !*others; i++)
        *others = i != schedule->tenant && view.tenants[i].id &&
                  is_locked(schedule, SCHEDULE_LOCK_TENANT + i);
    return true;
}

static void list_contenders(const struct schedule *schedule, const struct schedule_file *view,
                            struct contender list[SCHEDULE_TENANTS]) {
    for (int i = 0; i < SCHEDULE_TENANTS; i++) {
        const struct schedule_tenant *record = &view->tenants[i];
        bool present = i == schedule->tenant ||
                       (record->id && is_locked(schedule, SCHEDULE_LOCK_TENANT + i));
        list[i] = (struct contender){present, record->virtual_ns, record->wanted_ns,
                                     record->active_ns};
    }
}

static bool is_meant_for_another(const struct schedule *schedule,
                                 const struct schedule_lease *lease, uint64_t now_ns) {
    bool recent = now_ns - lease->given_up_ns + GIVEN_UP_STALE_NS < 2 * GIVEN_UP_STALE_NS;
    return recent && lease->next != 0 && lease->next != (uint32_t)schedule->tenant + 1;
}

static void write_lease(const struct schedule *schedule, const struct schedule_lease *lease) {
    ssize_t written = pwrite(schedule->descriptor, lease, sizeof *lease,
                             offsetof(struct schedule_file, lease));
    (void)written; /* a lease that cannot be told is only found out later */
}

typedef void record_change(struct schedule_tenant *record, const struct schedule_file *view,
                           const struct schedule *schedule, uint64_t now_ns);

/* Own record, changed under the lock of the table. */
static void update_record(struct schedule *schedule, record_change *change, uint64_t now_ns) {
    struct schedule_file view;
    if (!lock_table(schedule)) return;
    if (read_file(schedule, &view) && is_signed_in(schedule, &view)) {
        struct schedule_tenant record = view.tenants[schedule->tenant];
        change(&record, &view, schedule, now_ns);
        write_record(schedule, &record);
    }
    unlock_table(schedule);
}

static void take(struct schedule_tenant *record, const struct schedule_file *view,
                 const struct schedule *schedule, uint64_t now_ns) {
    struct contender list[SCHEDULE_TENANTS];
    list_contenders(schedule, view, list);
    record->virtual_ns = pacing_rebase(list, SCHEDULE_TENANTS, schedule->tenant,
                                       schedule->weight, now_ns);
    record->wanted_ns = 0;
    record->active_ns = now_ns;
    record->turns++;
}

bool schedule_take_lease(struct schedule *schedule, uint64_t now_ns) {
    struct schedule_file view;
    if (schedule->holds_lease && is_ours(schedule)) return true;
    if (!join_view(schedule, &view)) return false;
    schedule->other_since_ns = view.lease[0].since_ns;
    if (is_meant_for_another(schedule, &view.lease[0], now_ns)) return false;
    if (!set_lock(schedule, SCHEDULE_LOCK_LEASE, F_WRLCK)) return false;
    schedule->holds_lease = true;
    write_lease(schedule,
                &(struct schedule_lease){.holder = (uint32_t)schedule->tenant + 1,
                                         .since_ns = now_ns,
                                         .handovers = view.lease[0].handovers + 1});
    update_record(schedule, take, now_ns);
    return true;
}

static void want(struct schedule_tenant *record, const struct schedule_file *view,
                 const struct schedule *schedule, uint64_t now_ns) {
    struct contender list[SCHEDULE_TENANTS];
    list_contenders(schedule, view, list);
    record->virtual_ns = pacing_rebase(list, SCHEDULE_TENANTS, schedule->tenant,
                                       schedule->weight, now_ns);
    record->wanted_ns = now_ns;
    record->active_ns = now_ns;
}

void schedule_want(struct schedule *schedule, uint64_t now_ns) {
    update_record(schedule, want, now_ns);
}

static void renew(const struct schedule *schedule, const struct schedule_file *view,
                  uint64_t now_ns) {
    struct schedule_lease lease = view->lease[0];
    lease.since_ns = now_ns;
    write_lease(schedule, &lease);
}

int schedule_successor(struct schedule *schedule, bool is_idle, uint64_t busy_ns, uint64_t wait_ns,
                       uint64_t now_ns) {
    struct schedule_file view = {0};
    struct contender list[SCHEDULE_TENANTS];
    int successor = NO_TENANT;
    if (!is_ours(schedule) || !lock_table(schedule)) return NO_TENANT;
    if (read_file(schedule, &view) && is_signed_in(schedule, &view)) {
        struct schedule_tenant *record = &view.tenants[schedule->tenant];
        record->virtual_ns += pacing_virtual(busy_ns, schedule->weight);
        record->busy_ns += busy_ns;
        record->wait_ns += wait_ns;
        record->active_ns = now_ns;
        write_record(schedule, record);
        list_contenders(schedule, &view, list);
        if (is_idle) list[schedule->tenant].virtual_ns = UINT64_MAX;
        successor = pacing_successor(list, SCHEDULE_TENANTS, schedule->tenant, now_ns);
    }
    unlock_table(schedule);
    if (successor == NO_TENANT && schedule->holds_lease) renew(schedule, &view, now_ns);
    return successor;
}

uint64_t schedule_mark(struct schedule *schedule) {
    struct schedule_file view;
    if (!is_ours(schedule) || !read_file(schedule, &view)) return 0;
    const struct schedule_lease *lease = &view.lease[0];
    return lease->since_ns ^ lease->given_up_ns ^ lease->handovers;
}

void schedule_give_lease(struct schedule *schedule, int next, uint64_t now_ns) {
    struct schedule_file view;
    if (!schedule->holds_lease) return;
    schedule->holds_lease = false;
    if (!is_ours(schedule)) return;
    if (read_file(schedule, &view)) {
        struct schedule_lease lease = view.lease[0];
        lease.next = next == NO_TENANT ? 0 : (uint32_t)next + 1;
        lease.given_up_ns = now_ns;
        write_lease(schedule, &lease);
    }
    set_lock(schedule, SCHEDULE_LOCK_LEASE, F_UNLCK);
}

void schedule_after_fork(struct schedule *schedule) {
    if (is_ours(schedule)) close(schedule->descriptor);
    schedule->descriptor = -1;
    schedule->tenant = NO_TENANT;
    schedule->holds_lease = false;
}
