/* What is learnt from measurements: prints the estimate after each of the arguments (ns). */
#include <stdio.h>
#include <stdlib.h>

#include "pacing.h"

int main(int count, char **arguments) {
    struct estimate estimate = {0};
    for (int i = 1; i < count; i++) {
        pacing_learn(&estimate, strtoull(arguments[i], NULL, 10));
        printf("%llu\n", (unsigned long long)estimate.mean_ns);
    }
    return 0;
}
