/* Finds the folders of this process's budgets: <run folder>/claims/<claim>/<request>. */
#ifndef CASABA_CLAIM_FOLDERS_H
#define CASABA_CLAIM_FOLDERS_H

#include <stdbool.h>

/* Calls `visit` for each in path order (by claim, then by request, bytewise) until it returns
 * false. False: so it did, or a folder could not be read, and that was said. */
bool claim_folders_visit(bool (*visit)(const char *folder));

#endif
