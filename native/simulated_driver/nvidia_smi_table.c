/* The table that nvidia-smi shows without options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nvidia_smi.h"

enum { WIDTH = 89, BYTES_PER_MIB = 1 << 20 };

static const char cut[] = "+-----------------------------------------+------------------------+"
                          "----------------------+";

static void line(char fill, char end)
{
    putchar(end);
    for (int i = 0; i < WIDTH; i++)
        putchar(fill);
    printf("%c\n", end);
}

static void header(const struct smi *smi)
{
    char driver[TEXT_SIZE] = "N/A", cuda[TEXT_SIZE];
    int version = 0;
    time_t now = time(NULL);
    smi->nvmlSystemGetDriverVersion(driver, sizeof driver);
    smi->nvmlSystemGetCudaDriverVersion_v2(&version);
    snprintf(cuda, sizeof cuda, "%d.%d", version / 1000, version % 1000 / 10);
    printf("%s", ctime(&now));
    line('-', '+');
    printf("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n", driver, driver, cuda);
    puts(cut);
    puts("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |");
    puts("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |");
    puts("|                                         |                        |               MIG M. |");
    puts("|=========================================+========================+======================|");
}

static const char *on_off(nvmlReturn_t result, int value)
{
    return result != NVML_SUCCESS ? "N/A" : value == NVML_FEATURE_ENABLED ? "On" : "Off";
}

static void print_identity(const struct smi *smi, unsigned index, nvmlDevice_t card)
{
    char name[TEXT_SIZE], bus_id[TEXT_SIZE], errors[TEXT_SIZE] = "N/A";
    nvmlEnum_t persistence = 0, display = 0;
    unsigned long long count;
    smi_name(smi, card, name);
    smi_bus_id(smi, card, bus_id);
    const char *persistent = on_off(smi->nvmlDeviceGetPersistenceMode(card, &persistence),
                                    persistence);
    const char *shown = on_off(smi->nvmlDeviceGetDisplayActive(card, &display), display);
    if (smi->nvmlDeviceGetTotalEccErrors(card, 1, 0, &count) == NVML_SUCCESS)
        snprintf(errors, sizeof errors, "%llu", count);
    printf("| %3u  %-29s %3s  | %18s %3s | %20s |\n", index, name, persistent, bus_id, shown,
           errors);
}

static void print_activity(const struct smi *smi, nvmlDevice_t card)
{
    char fan[16] = "N/A", power[32], memory[64], busy[16] = "N/A";
    unsigned percent = 0, celsius = 0, draw_mw = 0, limit_mw = 0;
    nvmlEnum_t state = 0, mode = 0;
    nvmlUtilization_t use;
    if (smi->nvmlDeviceGetFanSpeed(card, &percent) == NVML_SUCCESS)
        snprintf(fan, sizeof fan, "%u%%", percent);
    smi->nvmlDeviceGetTemperature(card, NVML_TEMPERATURE_GPU, &celsius);
    smi->nvmlDeviceGetPerformanceState(card, &state);
    smi->nvmlDeviceGetPowerUsage(card, &draw_mw);
    smi->nvmlDeviceGetEnforcedPowerLimit(card, &limit_mw);
    smi->nvmlDeviceGetComputeMode(card, &mode);
    snprintf(power, sizeof power, "%uW / %uW", draw_mw / 1000, limit_mw / 1000);
    nvmlMemory_v2_t bytes = smi_memory(smi, card);
    snprintf(memory, sizeof memory, "%lluMiB / %lluMiB", bytes.used / BYTES_PER_MIB,
             bytes.total / BYTES_PER_MIB);
    if (smi->nvmlDeviceGetUtilizationRates(card, &use) == NVML_SUCCESS)
        snprintf(busy, sizeof busy, "%u%%", use.gpu);
    printf("| %-3s  %3uC    P%-2d    %19s | %22s | %7s %12s |\n", fan, celsius, state, power, memory,
           busy, mode == NVML_COMPUTEMODE_DEFAULT ? "Default" : "Exclusive");
}

static void print_mig(const struct smi *smi, nvmlDevice_t card)
{
    unsigned current = 0, pending = 0;
    const char *mig = "N/A";
    if (smi->nvmlDeviceGetMigMode(card, &current, &pending) == NVML_SUCCESS)
        mig = current ? "Enabled" : "Disabled";
    printf("| %39s | %22s | %20s |\n", "", "", mig);
}

static nvmlProcessInfo_t *processes_of(const struct smi *smi, nvmlDevice_t card, unsigned *count)
{
    nvmlProcessInfo_t *processes = NULL;
    nvmlReturn_t result;
    *count = 0;
    do { /* the list may grow meanwhile */
        processes = realloc(processes, (*count + 1) * sizeof *processes);
        if (processes == NULL)
            break;
        result = smi->nvmlDeviceGetComputeRunningProcesses_v3(card, count, processes);
    } while (result == NVML_ERROR_INSUFFICIENT_SIZE);
    if (processes == NULL || result != NVML_SUCCESS)
        *count = 0;
    return processes;
}

enum { NAME_SIZE = 1024, NAME_WIDTH = 35 };

/* Of a name that is too long the end says more than the beginning. */
static void print_process(unsigned index, const nvmlProcessInfo_t *process, const char *name)
{
    char memory[32];
    size_t length = strlen(name);
    const char *dots = length > NAME_WIDTH ? "..." : "";
    if (length > NAME_WIDTH)
        name += length - NAME_WIDTH + 3;
    snprintf(memory, sizeof memory, "%lluMiB", process->usedGpuMemory / BYTES_PER_MIB);
    printf("| %4u   N/A  N/A %16u      C   %s%-*s %10s |\n", index, process->pid, dots,
           NAME_WIDTH - (int)strlen(dots), name, memory);
}

static unsigned print_processes(const struct smi *smi, unsigned index)
{
    char name[NAME_SIZE];
    unsigned count;
    nvmlProcessInfo_t *processes = processes_of(smi, smi_card(smi, index), &count);
    for (unsigned i = 0; i < count; i++) {
        if (smi->nvmlSystemGetProcessName(processes[i].pid, name, sizeof name) != NVML_SUCCESS)
            strcpy(name, "N/A");
        print_process(index, &processes[i], name);
    }
    free(processes);
    return count;
}

void smi_print_table(const struct smi *smi)
{
    header(smi);
    for (unsigned i = 0; i < smi->card_count; i++) {
        nvmlDevice_t card = smi_card(smi, i);
        print_identity(smi, i, card);
        print_activity(smi, card);
        print_mig(smi, card);
        puts(cut);
    }
    putchar('\n');
    line('-', '+');
    printf("| %-87s |\n", "Processes:");
    puts("|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |");
    puts("|        ID   ID                                                               Usage      |");
    line('=', '|');
    unsigned count = 0;
    for (unsigned i = 0; i < smi->card_count; i++)
        count += print_processes(smi, i);
    if (count == 0)
        printf("| %-87s |\n", " No running processes found");
    line('-', '+');
}
