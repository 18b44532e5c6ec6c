/* Whose turn it is among the processes of one budget: words of region_card.compute. While several
 * of them launched at once, none could tell its own time on the card from the others'. */
#ifndef CASABA_TURN_H
#define CASABA_TURN_H

#include "budget.h"

/* Tries to become the one that may launch. */
bool turn_take(struct share *share, uint64_t now_ns);

bool turn_is_ours(const struct share *share);

/* Whether another process was held back for it lately. */
bool turn_is_wanted(const struct share *share, uint64_t now_ns);

void turn_renew(struct share *share, uint64_t now_ns);
void turn_give(struct share *share);

#endif
