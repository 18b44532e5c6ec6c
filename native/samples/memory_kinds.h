/* The ways to take device memory, behind one pair of functions. */
#ifndef CASABA_SAMPLES_MEMORY_KINDS_H
#define CASABA_SAMPLES_MEMORY_KINDS_H

#include <stdbool.h>

#include "cuda_api.h"

enum memory_kind { KIND_ALLOC, KIND_PITCH, KIND_MANAGED, KIND_CREATE, KIND_COUNT };

struct memory {
    enum memory_kind kind;
    CUdeviceptr pointer;
    size_t bytes; /* what the card gives for it */
    CUmemGenericAllocationHandle handle;
};

extern const char *const memory_kind_names[KIND_COUNT];

/* False when there is no kind of that name. */
bool memory_kind_named(const char *name, enum memory_kind *kind);

/* Takes about `bytes` of the device, rounded up as the kind demands. */
CUresult memory_take(struct memory *memory, enum memory_kind kind, size_t bytes, int device);
CUresult memory_give_back(struct memory *memory);

#endif
