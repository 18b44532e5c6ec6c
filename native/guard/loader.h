/* The C library's own dlsym, dlvsym and dlopen, which other names of this library hide. Before
 * glibc 2.34 they live in libdl.so.2, which need not be loaded (nor be there at all). */
#ifndef CASABA_LOADER_H
#define CASABA_LOADER_H

typedef void *dlsym_fn(void *handle, const char *name);
typedef void *dlvsym_fn(void *handle, const char *name, const char *version);

dlsym_fn *loader_dlsym(void);   /* NULL: the process has none */
dlvsym_fn *loader_dlvsym(void); /* NULL: the process has none */

/* Keeps a loaded object loaded until the process ends. */
void loader_pin(const char *path);

#endif
