/* Takes device memory in equal chunks until the driver refuses one, and shows each total.
 * Exit code 0 when the refusal is CUDA_ERROR_OUT_OF_MEMORY. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "doors.h"
#include "memory_kinds.h"

static const char usage[] =
    "usage: %s [--chunk-mib=1024] [--kind=alloc|pitch|managed|create] [--device=0] [--hold]\n"
    "  --hold  keeps the memory until standard input ends\n";

static const struct option options[] = {
    {"chunk-mib", required_argument, NULL, 'c'}, {"kind", required_argument, NULL, 'k'},
    {"device", required_argument, NULL, 'd'},    {"hold", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static CUresult take_all(enum memory_kind kind, size_t chunk_mib, int device)
{
    struct memory memory;
    size_t total_mib = 0;
    for (;;) {
        CUresult result = memory_take(&memory, kind, chunk_mib * MIB, device);
        if (result != CUDA_SUCCESS) {
            printf("%zu MiB refused: %s\n", total_mib + chunk_mib, result_name(result));
            fflush(stdout);
            return result;
        }
        total_mib += chunk_mib;
        printf("%zu MiB allocated\n", total_mib);
    }
}

int main(int count, char **arguments)
{
    size_t chunk_mib = 1024;
    enum memory_kind kind = KIND_ALLOC;
    int device = 0, hold = 0, option;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        if (option == 'c')
            chunk_mib = strtoul(optarg, NULL, 10);
        else if (option == 'd')
            device = atoi(optarg);
        else if (option == 'h')
            hold = 1;
        if (option == '?' || chunk_mib == 0 ||
            (option == 'k' && !memory_kind_named(optarg, &kind))) {
            fprintf(stderr, usage, arguments[0]);
            return 2;
        }
    }
    doors_open_device(device);
    CUresult result = take_all(kind, chunk_mib, device);
    while (hold && getchar() != EOF)
        continue;
    return result == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 1;
}
