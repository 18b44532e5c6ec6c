#define _GNU_SOURCE
#include "card_account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card_queue.h"
#include "card_schedule.h"
#include "card_shares.h"

#define PATH(name, text) static const char PATH_##name[] __attribute__((unused)) = text;
#include "host_paths.def"
#undef PATH

enum { STATE_MAGIC = 0x53425343, STATE_VERSION = 2, PATH_SIZE = 4096 };
enum { LOCK_CLAIM = 0x1000000, LOCK_LIVE = 0x2000000, LOCK_CARD = 0x3000000,
       LOCK_SHARES = 0x4000000, LOCK_SHARE = 0x5000000 }; /* not about the bytes there */

typedef _Atomic uint64_t atomic_u64;

struct state_file {
    uint32_t magic, version;
    uint32_t card_count;
    _Atomic uint32_t high_water; /* slots ever used */
    uint8_t uuids[CARDS_MAX][16];
    atomic_u64 bytes[CARDS_MAX][SLOTS];
    struct shares shares;
    struct card_time times[]; /* one for each card */
};

/* Most of it is never written, and so takes no room. */
static off_t state_size(const struct host *host)
{
    return (off_t)(sizeof(struct state_file) + host->card_count * sizeof(struct card_time));
}

const char *simulated_dir(void)
{
    const char *dir = getenv("CASABA_SIMULATED_DIR");
    return dir != NULL && dir[0] != '\0' ? dir : PATH_SIMULATED_DIR;
}

void reason_show(const struct reason *reason)
{
    if (getenv("CASABA_SIMULATED_VERBOSE") != NULL)
        dprintf(STDERR_FILENO, "casaba simulated driver: %s\n", reason->text);
}

static bool refuse(struct reason *reason, const char *path, const char *what)
{
    snprintf(reason->text, REASON_SIZE, "%.300s %s: %s", path, what, strerror(errno));
    return false;
}

static int lock_byte(int fd, int command, short type, off_t byte)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do {
        result = fcntl(fd, command, &lock);
    } while (result != 0 && errno == EINTR);
    return result;
}

/* Who else holds the byte: -1 nobody, 0 someone without a PID here, else the PID. */
static int lock_holder(int fd, off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return -1;
    return lock.l_pid > 0 ? lock.l_pid : 0;
}

static bool fill_state(int fd, const struct host *host)
{
    struct state_file *state = calloc(1, sizeof *state);
    if (state == NULL)
        return false;
    state->magic = STATE_MAGIC;
    state->version = STATE_VERSION;
    state->card_count = host->card_count;
    for (unsigned i = 0; i < host->card_count; i++)
        memcpy(state->uuids[i], host->cards[i].uuid_bytes, 16);
    ssize_t written = write(fd, state, sizeof *state);
    free(state);
    return written == (ssize_t)sizeof *state && ftruncate(fd, state_size(host)) == 0;
}

/* A complete file gets its name in one step, by link: whoever is late uses the winner's. */
static bool make_state(const char *path, const struct host *host)
{
    char temporary[PATH_SIZE];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = fill_state(fd, host) && fchmod(fd, 0666) == 0 &&
                (link(temporary, path) == 0 || errno == EEXIST);
    int error = errno;
    unlink(temporary);
    close(fd);
    errno = error;
    return good;
}

static int open_shared(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EROFS))
        fd = open(path, O_RDONLY | O_CLOEXEC); /* enough for a reader */
    return fd;
}

static int open_state(const char *path, const struct host *host)
{
    int fd = open_shared(path);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    return make_state(path, host) ? open_shared(path) : -1;
}

static int open_pids(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
        fchmod(fd, 0666); /* whatever the umask is; only its maker may */
        return fd;
    }
    return errno == EEXIST || errno == EACCES || errno == EROFS ? open_shared(path) : -1;
}

static bool fits(const struct state_file *state, const struct host *host)
{
    if (state->magic != STATE_MAGIC || state->version != STATE_VERSION ||
        state->card_count != host->card_count)
        return false;
    for (unsigned i = 0; i < host->card_count; i++)
        if (memcmp(state->uuids[i], host->cards[i].uuid_bytes, 16) != 0)
            return false;
    return true;
}

static bool map_state(struct account *account, const char *path, struct reason *reason)
{
    struct stat status;
    if (fstat(account->state_fd, &status) != 0)
        return refuse(reason, path, "cannot be examined");
    int writable = (fcntl(account->state_fd, F_GETFL) & O_ACCMODE) == O_RDWR ? PROT_WRITE : 0;
    void *memory = MAP_FAILED;
    size_t size = (size_t)state_size(account->host);
    if (status.st_size == (off_t)size) {
        memory = mmap(NULL, size, PROT_READ | writable, MAP_SHARED,
                      account->state_fd, 0);
        if (memory == MAP_FAILED)
            return refuse(reason, path, "cannot be mapped");
        if (fits(memory, account->host)) {
            account->state = memory;
            return true;
        }
        munmap(memory, size);
    }
    snprintf(reason->text, REASON_SIZE,
             "%.300s was made for other cards than cards.conf lists now, or by another release: "
             "remove it when no process uses the cards", path);
    return false;
}

/* False also when the folder was made anew since: the old file may still hold this process's lock,
 * so its descriptor is left open and forgotten. */
static bool is_open(int fd, const char *path)
{
    struct stat opened, named;
    return fd >= 0 && fstat(fd, &opened) == 0 && stat(path, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static bool open_files(struct account *account, struct reason *reason)
{
    char state[PATH_SIZE - 16], pids[PATH_SIZE - 16];
    snprintf(state, sizeof state, "%s/state", simulated_dir());
    snprintf(pids, sizeof pids, "%s/pids", simulated_dir());
    account->state_fd = open_state(state, account->host);
    if (account->state_fd < 0)
        return refuse(reason, state, "cannot be opened");
    if (!is_open(account->pids_fd, pids))
        account->pids_fd = open_pids(pids);
    if (account->pids_fd < 0)
        return refuse(reason, pids, "cannot be opened");
    return map_state(account, state, reason);
}

bool account_open(struct account *account, struct host *host, struct reason *reason)
{
    char conf[PATH_SIZE];
    snprintf(conf, sizeof conf, "%s/cards.conf", simulated_dir());
    if (!cards_conf_read(conf, host, reason))
        return false;
    account->slot = -1;
    account->host = host;
    if (open_files(account, reason))
        return true;
    account_close(account);
    return false;
}

static bool take_slot(struct account *account, unsigned slot)
{
    if (lock_byte(account->state_fd, F_OFD_SETLK, F_WRLCK, LOCK_CLAIM + (off_t)slot) != 0)
        return false;
    for (unsigned card = 0; card < CARDS_MAX; card++)
        atomic_store(&account->state->bytes[card][slot], 0);
    uint32_t seen = atomic_load(&account->state->high_water);
    while (seen <= slot &&
           !atomic_compare_exchange_weak(&account->state->high_water, &seen, slot + 1))
        continue;
    return lock_byte(account->pids_fd, F_SETLK, F_WRLCK, (off_t)slot) == 0 &&
           lock_byte(account->state_fd, F_OFD_SETLK, F_WRLCK, LOCK_LIVE + (off_t)slot) == 0;
}

bool account_take_slot(struct account *account, struct reason *reason)
{
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (take_slot(account, slot)) {
            account->slot = (int)slot;
            shares_forget(account);
            queue_open(account);
            return true;
        }
        if (errno != EAGAIN && errno != EACCES)
            return refuse(reason, simulated_dir(), "does not allow locks");
    }
    snprintf(reason->text, REASON_SIZE, "%.300s has no free slot: %d processes use the cards",
             simulated_dir(), SLOTS);
    return false;
}

void account_close(struct account *account)
{
    if (account->state != NULL)
        munmap(account->state, (size_t)state_size(account->host));
    if (account->state_fd >= 0)
        close(account->state_fd);
    account->state = NULL;
    account->state_fd = account->slot = -1;
}

bool account_lives(const struct account *account, unsigned slot)
{
    return (int)slot == account->slot ||
           lock_holder(account->state_fd, LOCK_LIVE + (off_t)slot) >= 0;
}

int account_pid(const struct account *account, unsigned slot)
{
    return lock_holder(account->pids_fd, (off_t)slot);
}

unsigned account_slots(const struct account *account)
{
    uint32_t high = atomic_load(&account->state->high_water);
    return high < SLOTS ? high : SLOTS;
}

struct card_time *account_time(const struct account *account, unsigned card)
{
    return &account->state->times[card];
}

static uint64_t sum(const struct account *account, unsigned card, bool with_dead)
{
    uint64_t total = 0;
    unsigned slots = account_slots(account);
    for (unsigned slot = 0; slot < slots; slot++) {
        uint64_t bytes = atomic_load(&account->state->bytes[card][slot]);
        if (bytes != 0 && (with_dead || account_lives(account, slot)))
            total += bytes;
    }
    return total + shares_bytes(account, card);
}

static void lock_card(struct account *account, unsigned card, short type)
{
    pthread_mutex_lock(&account->lock);
    lock_byte(account->state_fd, F_OFD_SETLKW, type, LOCK_CARD + (off_t)card);
}

void account_lock(struct account *account, unsigned card)
{
    lock_card(account, card, F_WRLCK);
}

void account_unlock(struct account *account, unsigned card)
{
    lock_byte(account->state_fd, F_OFD_SETLK, F_UNLCK, LOCK_CARD + (off_t)card);
    pthread_mutex_unlock(&account->lock);
}

void account_lock_shares(struct account *account)
{
    lock_byte(account->state_fd, F_OFD_SETLKW, F_WRLCK, LOCK_SHARES);
}

void account_unlock_shares(struct account *account)
{
    lock_byte(account->state_fd, F_OFD_SETLK, F_UNLCK, LOCK_SHARES);
}

struct shares *account_shares(const struct account *account)
{
    return &account->state->shares;
}

bool account_descriptor_lives(const struct account *account, unsigned number)
{
    return lock_holder(account->state_fd, LOCK_SHARE + (off_t)number) >= 0;
}

/* Read locks: several descriptors may hold one share. */
int account_open_descriptor(const struct account *account, unsigned number)
{
    char path[PATH_SIZE];
    (void)account;
    snprintf(path, sizeof path, "%s/state", simulated_dir());
    int descriptor = open_shared(path);
    if (descriptor < 0 ||
        lock_byte(descriptor, F_OFD_SETLK, F_RDLCK, LOCK_SHARE + (off_t)number) == 0)
        return descriptor;
    close(descriptor);
    return -1;
}

bool account_is_own_file(const struct account *account, int descriptor)
{
    struct stat own, given;
    return fstat(account->state_fd, &own) == 0 && fstat(descriptor, &given) == 0 &&
           own.st_dev == given.st_dev && own.st_ino == given.st_ino;
}

bool account_charge(struct account *account, unsigned card, uint64_t bytes)
{
    uint64_t memory = account->host->cards[card].memory_bytes;
    if (bytes > memory)
        return false;
    account_lock(account, card);
    /* Dead slots are asked for only when it matters: each costs a system call. */
    bool room = sum(account, card, true) <= memory - bytes ||
                sum(account, card, false) <= memory - bytes;
    if (room)
        atomic_fetch_add(&account->state->bytes[card][account->slot], bytes);
    account_unlock(account, card);
    return room;
}

void account_release(struct account *account, unsigned card, uint64_t bytes)
{
    atomic_fetch_sub(&account->state->bytes[card][account->slot], bytes);
}

/* The read lock keeps charges out: else what moves from a slot that is already counted to one that
 * is not would be counted twice. */
uint64_t account_used(struct account *account, unsigned card)
{
    lock_card(account, card, F_RDLCK);
    uint64_t bytes = sum(account, card, false);
    account_unlock(account, card);
    return bytes;
}

unsigned account_processes(struct account *account, unsigned card, struct card_process *processes,
                           unsigned room)
{
    unsigned count = 0, slots = account_slots(account);
    lock_card(account, card, F_RDLCK);
    for (unsigned slot = 0; slot < slots; slot++) {
        uint64_t bytes = atomic_load(&account->state->bytes[card][slot]) +
                         shares_shown(account, card, slot);
        int pid = bytes == 0 ? 0 : account_pid(account, slot);
        if (pid <= 0)
            continue;
        if (count < room)
            processes[count] = (struct card_process){(unsigned)pid, bytes};
        count++;
    }
    account_unlock(account, card);
    return count;
}
