/* The thread that looks after launches between the program's own calls: it charges what runs long,
 * gives the card up when it is due, and sees limits and neighbours change. There is none before the
 * first launch on a card that is limited or shared. */
#ifndef CASABA_WATCHER_H
#define CASABA_WATCHER_H

void watcher_start(void); /* once; does nothing afterwards */
void watcher_after_fork(void);

#endif
