/* The only two things that the guard ever prints, each at most once a process, to stderr. */
#ifndef CASABA_MESSAGE_H
#define CASABA_MESSAGE_H

/* Why GPU calls are refused: the file, what is wrong with it, what to do. */
void message_refusal(const char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The line by which users of HAMi-core see that the guard is there. */
void message_announce(void);

void message_forget(void); /* in a fork child, which is another process */

#endif
