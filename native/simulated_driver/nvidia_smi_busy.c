/* --busy: lines of `card, serial, pid, living, busy_ns` and, for each card, one with its whole
 * account, `card, total, now_ns, -, busy_ns`. */
#include <stdio.h>
#include <stdlib.h>

#include "nvidia_smi.h"

static nvmlReturn_t print_card(const struct smi *smi, unsigned index)
{
    unsigned count = 0;
    unsigned long long whole = 0, now = 0;
    nvmlDevice_t card = smi_card(smi, index);
    nvmlReturn_t result = smi->busy(card, NULL, &count, NULL, NULL);
    if (result != NVML_SUCCESS)
        return result;
    unsigned room = count + 64; /* for those that come meanwhile */
    casabaSimulatedBusy_t *entries = calloc(room, sizeof *entries);
    if (entries == NULL)
        return NVML_ERROR_MEMORY;
    result = smi->busy(card, entries, &room, &whole, &now);
    for (unsigned i = 0; result == NVML_SUCCESS && i < room; i++)
        printf("%u, %llu, %u, %u, %llu\n", index, entries[i].serial, entries[i].pid,
               entries[i].living, entries[i].busy_ns);
    if (result == NVML_SUCCESS)
        printf("%u, total, %llu, -, %llu\n", index, now, whole);
    free(entries);
    return result;
}

int smi_print_busy(const struct smi *smi)
{
    if (smi->busy == NULL) {
        fputs("nvidia-smi: --busy needs the simulated driver; this is another\n", stderr);
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    nvmlReturn_t result = NVML_SUCCESS;
    puts("card, serial, pid, living, busy_ns");
    for (unsigned i = 0; i < smi->card_count && result == NVML_SUCCESS; i++)
        result = print_card(smi, i);
    return (int)result;
}
