#define _GNU_SOURCE
#include "card_shares.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned own_holds[SHARES]; /* how often this process holds each */

static bool holds(const struct share *share, unsigned slot)
{
    return share->holders[slot / 64] >> slot % 64 & 1;
}

static void set_holder(struct share *share, unsigned slot, bool holder)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    share->holders[slot / 64] = holder ? share->holders[slot / 64] | bit
                                       : share->holders[slot / 64] & ~bit;
}

/* The living holder with which the share is shown: its maker, else any; SLOTS when none lives. */
static unsigned holder_of(const struct account *account, const struct share *share)
{
    if (holds(share, share->maker) && account_lives(account, share->maker))
        return share->maker;
    for (unsigned word = 0; word < SLOT_WORDS; word++)
        for (uint64_t bits = share->holders[word]; bits != 0; bits &= bits - 1) {
            unsigned slot = word * 64 + (unsigned)__builtin_ctzll(bits);
            if (account_lives(account, slot))
                return slot;
        }
    return SLOTS;
}

static bool is_held(const struct account *account, unsigned number)
{
    const struct share *share = &account_shares(account)->entries[number];
    return share->key != 0 && (holder_of(account, share) < SLOTS ||
                               account_descriptor_lives(account, number));
}

int share_make(struct account *account, unsigned card, uint64_t bytes)
{
    int number = -1;
    struct shares *shares = account_shares(account);
    account_lock(account, card);
    account_lock_shares(account);
    for (unsigned i = 0; i < SHARES && number < 0; i++)
        if (!is_held(account, i))
            number = (int)i;
    if (number >= 0) {
        struct share *share = &shares->entries[number];
        *share = (struct share){.card = card, .maker = (uint32_t)account->slot, .bytes = bytes};
        set_holder(share, (unsigned)account->slot, true);
        account_release(account, card, bytes);
        share->key = ++shares->last_key;
        own_holds[number] = 1;
        if (shares->used <= (uint32_t)number)
            shares->used = (uint32_t)number + 1;
    }
    account_unlock_shares(account);
    account_unlock(account, card);
    return number;
}

bool share_join(struct account *account, unsigned number, uint64_t key, struct share *share)
{
    if (number >= SHARES)
        return false;
    struct share *entry = &account_shares(account)->entries[number];
    account_lock_shares(account);
    bool good = key != 0 && entry->key == key && is_held(account, number);
    if (good) {
        set_holder(entry, (unsigned)account->slot, true);
        own_holds[number]++;
        *share = *entry;
    }
    account_unlock_shares(account);
    return good;
}

void share_leave(struct account *account, unsigned number)
{
    if (--own_holds[number] > 0)
        return;
    account_lock_shares(account);
    set_holder(&account_shares(account)->entries[number], (unsigned)account->slot, false);
    account_unlock_shares(account);
}

uint64_t share_key(struct account *account, unsigned number)
{
    return account_shares(account)->entries[number].key;
}

/* The number travels as the descriptor's place in the file, which its copies share. */
int share_descriptor(struct account *account, unsigned number)
{
    int descriptor = account_open_descriptor(account, number);
    if (descriptor >= 0 && lseek(descriptor, (off_t)number, SEEK_SET) < 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

bool share_of_descriptor(struct account *account, int descriptor, unsigned *number, uint64_t *key)
{
    off_t place = lseek(descriptor, 0, SEEK_CUR);
    if (place < 0 || place >= SHARES || !account_is_own_file(account, descriptor))
        return false;
    *number = (unsigned)place;
    *key = share_key(account, *number);
    return true;
}

void shares_forget(struct account *account)
{
    struct shares *shares = account_shares(account);
    account_lock_shares(account);
    for (unsigned i = 0; i < shares->used; i++)
        set_holder(&shares->entries[i], (unsigned)account->slot, false);
    account_unlock_shares(account);
}

uint64_t shares_bytes(const struct account *account, unsigned card)
{
    uint64_t bytes = 0;
    const struct shares *shares = account_shares(account);
    for (unsigned i = 0; i < shares->used; i++) {
        const struct share *share = &shares->entries[i];
        if (share->key != 0 && share->card == card && is_held(account, i))
            bytes += share->bytes;
    }
    return bytes;
}

uint64_t shares_shown(const struct account *account, unsigned card, unsigned slot)
{
    uint64_t bytes = 0;
    const struct shares *shares = account_shares(account);
    for (unsigned i = 0; i < shares->used; i++) {
        const struct share *share = &shares->entries[i];
        if (share->key != 0 && share->card == card && holder_of(account, share) == slot)
            bytes += share->bytes;
    }
    return bytes;
}
