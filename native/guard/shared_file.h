/* Maps a file that is shared with the node agent, after checking what it is. */
#ifndef CASABA_SHARED_FILE_H
#define CASABA_SHARED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define SHARED_FILE_REMEDY "delete the pod (or run the command) again so that the file is made anew"

struct shared_header { /* the first words of each such file */
    uint32_t magic, version, size;
};

/* NULL: it cannot be used, and that was said. */
void *shared_file_map(const char *path, int descriptor, bool writable,
                      const struct shared_header *wanted);

#endif
