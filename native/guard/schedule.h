/* One process's part in the schedule of a card: include/schedule.def. Nothing here blocks, and what
 * other tenants write is believed only where it can do no more than cost a turn. Calls for one
 * schedule are made by one thread at a time. */
#ifndef CASABA_SCHEDULE_H
#define CASABA_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "layouts.h"

enum { SCHEDULE_PATH_BYTES = 640, NO_TENANT = -1 };

struct schedule {
    char path[SCHEDULE_PATH_BYTES];
    uint64_t id; /* of this tenant */
    uint32_t weight, cores;
    int descriptor;       /* -1: none */
    struct stat identity; /* what the descriptor must still be */
    int tenant;           /* own record; NO_TENANT: not registered */
    bool holds_lease;
    uint64_t other_since_ns; /* when the holder's quantum began, as last seen */
};

/* Names the file and the tenant; opens nothing. `budget_folder`: <run>/claims/<claim>/<request>. */
void schedule_name(struct schedule *schedule, const char *budget_folder, const uint8_t uuid[16]);

/* Opens and registers where that is not done yet (or no longer holds). False: there is no usable
 * file now. `others` gets whether other tenants live on the card. */
bool schedule_join(struct schedule *schedule, bool *others);

/* Tries to become the one that may launch. */
bool schedule_take_lease(struct schedule *schedule, uint64_t now_ns);

/* Says that a launch is held back, so that the holder sees it. */
void schedule_want(struct schedule *schedule, uint64_t now_ns);

/* The tenant that should have the card instead; NO_TENANT: none. One that is idle lets anybody
 * have it. Adds what was used and waited meanwhile. */
int schedule_successor(struct schedule *schedule, bool is_idle, uint64_t busy_ns, uint64_t wait_ns,
                       uint64_t now_ns);

/* Changes whenever a holder takes, keeps or gives the lease. */
uint64_t schedule_mark(struct schedule *schedule);

/* Gives the card up, for one tenant or (NO_TENANT) for anyone. */
void schedule_give_lease(struct schedule *schedule, int next, uint64_t now_ns);

/* In a fork child: lets go of the parent's descriptor without touching its locks. */
void schedule_after_fork(struct schedule *schedule);

#endif
