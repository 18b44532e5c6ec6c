/* What copies need to know of mapped memory. */
#ifndef CASABA_CUDA_VIRTUAL_H
#define CASABA_CUDA_VIRTUAL_H

#include "cuda_ranges.h"

struct physical;

/* Memory of a handle at reserved addresses. */
struct mapping {
    struct range range;
    struct physical *physical;
    bool accessible;
};

#endif
