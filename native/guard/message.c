#include "message.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static atomic_bool refused, announced;

static void print(const char *line, int length, size_t room) {
    size_t bytes = length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
    if (write(STDERR_FILENO, line, bytes) < 0) return; /* a closed stderr is the program's affair */
}

void message_refusal(const char *path, const char *format, ...) {
    if (atomic_exchange(&refused, true)) return;
    char reason[512], line[1280];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    int length = snprintf(line, sizeof line, "casaba guard: %s: %s; until then GPU calls fail\n",
                          path, reason);
    print(line, length, sizeof line);
}

void message_announce(void) {
    if (atomic_exchange(&announced, true)) return;
    char line[128];
    int length = snprintf(line, sizeof line,
                          "[HAMI-core Msg(%d:%lu:libcasaba_guard.c:%d)]: Initializing.....\n",
                          (int)getpid(), (unsigned long)pthread_self(), __LINE__);
    print(line, length, sizeof line);
}

void message_forget(void) {
    atomic_store(&refused, false);
    atomic_store(&announced, false);
}
