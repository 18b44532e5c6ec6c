/* The account of the cards' memory and time, shared by all processes of a host.
 *
 * The folder holds three files: `cards.conf`; `state`, mapped by everyone; `pids`, empty, only
 * there for its locks. Whoever comes first makes the last two.
 *
 * Every CUDA process owns one slot of `state`: for each card a word, the bytes that it holds there,
 * and a channel for its work (card_schedule.h).
 * The locks are the kernel's, so that no dead process keeps anything, however it ended:
 *   - claim + slot (OFD lock in `state`): the slot is taken. Its new owner zeroes the words, then
 *   - live + slot (OFD lock in `state`): the words count. Both go when the descriptor is closed,
 *     as a real driver frees a process's memory then;
 *   - card (OFD lock in `state`): held while a request is checked against the card's memory, and
 *     shared by those who add up;
 *   - shares (OFD lock in `state`): held while card_shares.h changes; behind that of a card;
 *   - share + number (OFD lock in `state`, of a descriptor of its own): the share is held by the
 *     descriptor;
 *   - slot (record lock in `pids`): tells a reader the owner's PID in the reader's own view. Record
 *     locks vanish when the process closes any descriptor of the file, so nothing here does. */
#ifndef CASABA_CARD_ACCOUNT_H
#define CASABA_CARD_ACCOUNT_H

#include <pthread.h>

#include "cards_conf.h"

struct card_time;
struct shares;
struct state_file;

struct account {
    int state_fd, pids_fd;
    int slot; /* -1: a reader */
    struct state_file *state;
    const struct host *host;
    pthread_mutex_t lock; /* OFD locks do not exclude threads that share the descriptor */
};

struct card_process {
    unsigned pid;
    uint64_t bytes;
};

/* The folder: $CASABA_SIMULATED_DIR, else the default of host_paths.def. */
const char *simulated_dir(void);

/* Reads cards.conf and opens the account as a reader. On failure nothing stays open. */
bool account_open(struct account *account, struct host *host, struct reason *reason);

/* Makes the reader the owner of a slot, until the process ends or the descriptor is closed. */
bool account_take_slot(struct account *account, struct reason *reason);

/* Gives up the slot, if there is one, and the account; in a fork child only the child's copies, not
 * the parent's slot. The descriptor of `pids` stays open, for the next account_open(). */
void account_close(struct account *account);

/* Takes `bytes` of a card for this process. False when the card has not that much left. */
bool account_charge(struct account *account, unsigned card, uint64_t bytes);
void account_release(struct account *account, unsigned card, uint64_t bytes);

/* Bytes of a card held by all living processes. */
uint64_t account_used(struct account *account, unsigned card);

/* Processes that hold memory of the card and that the reader's PID namespace can see. Fills up to
 * `room` entries and returns how many there are. */
unsigned account_processes(struct account *account, unsigned card, struct card_process *processes,
                           unsigned room);

/* Slots ever used; does the slot's owner live; a card's time. */
unsigned account_slots(const struct account *account);
bool account_lives(const struct account *account, unsigned slot);
struct card_time *account_time(const struct account *account, unsigned card);

/* The slot's owner by the reader's PID namespace: 0 when it is not to be seen there, -1 when there
 * is none. */
int account_pid(const struct account *account, unsigned slot);

/* For card_shares.h: the table, its lock, that of a card, and descriptors that hold a share. */
struct shares *account_shares(const struct account *account);
void account_lock(struct account *account, unsigned card);
void account_unlock(struct account *account, unsigned card);
void account_lock_shares(struct account *account);
void account_unlock_shares(struct account *account);
bool account_descriptor_lives(const struct account *account, unsigned number);
int account_open_descriptor(const struct account *account, unsigned number); /* -1: errno says */
bool account_is_own_file(const struct account *account, int descriptor);

/* Writes the reason to stderr when $CASABA_SIMULATED_VERBOSE is set: a driver does not print. */
void reason_show(const struct reason *reason);

#endif
