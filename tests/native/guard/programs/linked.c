/* Reaches the driver by linked symbols only. Prints the results of an allocation of argv[1] bytes
 * and of one byte more. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda_api.h"

int main(int count, char **arguments) {
    CUcontext context;
    CUdeviceptr pointer;
    size_t bytes = count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 1;
    printf("%d ", cuMemAlloc_v2(&pointer, bytes + 1));
    printf("%d\n", cuMemAlloc_v2(&pointer, bytes));
    return 0;
}
