/* The functions of the drivers that are known here, hooked or not. A name that is asked for and not
 * known passes, but is counted: it may be a new way to get memory or to launch. */
#ifndef CASABA_NAMES_H
#define CASABA_NAMES_H

/* Looks at a name that the program asks a driver for. */
void names_asked(const char *name);

/* Tells the regions the count so far; as soon as this process has a slot. */
void names_tell(void);

void names_after_fork(void);

#endif
