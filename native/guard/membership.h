/* When this process comes under its limits: nothing is read before CUDA or NVML is used. */
#ifndef CASABA_MEMBERSHIP_H
#define CASABA_MEMBERSHIP_H

#include <stdbool.h>

enum stance {
    UNGUARDED, /* no budget: everything passes untouched */
    GUARDED,
    REFUSING /* a budget that cannot be used: GPU calls fail; the reason was said */
};

/* Limits are known: enough to show them. */
enum stance membership_look(void);

/* And a slot is held in every region: needed before anything is charged, and taken before the
 * driver opens its devices (lower_descriptor in budget.c tells why). */
enum stance membership_join(void);

/* Whether that has been done; joins nothing. */
bool membership_has_joined(void);

/* From now on joining is refused, or not any more: the driver has none of the budgets' cards. */
void membership_refuse(bool refuse);

#endif
