/* Reads the policy file of one budget: include/policy.def. */
#ifndef CASABA_POLICY_H
#define CASABA_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "layouts.h"

/* Maps the file. 1: done; 0: there is no such file; -1: it cannot be used, and that was said. */
int policy_open(const char *path, const struct policy_file **policy);

/* Copies the valid limits and tells the counter they belong to. False: each of `tries` looks met a
 * write in progress or a copy whose checksum is wrong. */
bool policy_read(const struct policy_file *policy, int tries, struct policy_copy *limits,
                 uint64_t *index);

#endif
