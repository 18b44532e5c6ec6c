#include "placement.h"

#include <string.h>

#include "drivers.h"
#include "known_contexts.h"

enum { KNOWN_DEVICES = 64, LAST_DEFAULT_STREAM = 2 /* of the handles NULL, 1 and 2 */ };

/* Cards by device ordinal, as far as the driver was asked. */
static _Atomic(struct card *) known[KNOWN_DEVICES];
static struct card unlimited; /* stands for: asked, no budget */

static bool ask_uuid(CUdevice device, CUuuid *uuid) {
    __typeof__(&cuDeviceGetUuid) ask =
        (__typeof__(&cuDeviceGetUuid))driver_entry(ENTRY_cuDeviceGetUuid_v2);
    if (!ask) ask = (__typeof__(&cuDeviceGetUuid))driver_entry(ENTRY_cuDeviceGetUuid);
    return ask && ask(uuid, device) == CUDA_SUCCESS;
}

static struct card *ask(CUdevice device) {
    CUuuid uuid;
    if (!ask_uuid(device, &uuid)) return NULL;
    struct card *card = budgets_card(uuid.bytes);
    if (device >= 0 && device < KNOWN_DEVICES)
        atomic_store(&known[device], card ? card : &unlimited);
    return card;
}

struct card *placement_of_device(CUdevice device) {
    struct card *card = NULL;
    if (device >= 0 && device < KNOWN_DEVICES) card = atomic_load(&known[device]);
    if (!card) return ask(device);
    return card == &unlimited ? NULL : card;
}

static bool device_here(CUdevice *device) {
    __typeof__(&cuCtxGetDevice) ask =
        (__typeof__(&cuCtxGetDevice))driver_entry(ENTRY_cuCtxGetDevice);
    return ask && ask(device) == CUDA_SUCCESS;
}

struct card *placement_of_thread(CUcontext *context) {
    __typeof__(&cuCtxGetCurrent) current =
        (__typeof__(&cuCtxGetCurrent))driver_entry(ENTRY_cuCtxGetCurrent);
    struct card *card;
    CUdevice device;
    if (contexts_only(context, &card)) return card;
    *context = NULL;
    if (!current || current(context) != CUDA_SUCCESS) return NULL;
    return device_here(&device) ? placement_of_device(device) : NULL;
}

static bool device_of_context(CUcontext context, CUdevice *device) {
    __typeof__(&cuCtxPushCurrent_v2) push =
        (__typeof__(&cuCtxPushCurrent_v2))driver_entry(ENTRY_cuCtxPushCurrent_v2);
    __typeof__(&cuCtxPopCurrent_v2) pop =
        (__typeof__(&cuCtxPopCurrent_v2))driver_entry(ENTRY_cuCtxPopCurrent_v2);
    if (!push || !pop || push(context) != CUDA_SUCCESS) return false;
    bool known = device_here(device);
    pop(&context);
    return known;
}

/* The default streams are those of the thread's context. */
bool placement_device_of_stream(CUstream stream, CUdevice *device) {
    __typeof__(&cuStreamGetCtx) ask =
        (__typeof__(&cuStreamGetCtx))driver_entry(ENTRY_cuStreamGetCtx);
    CUcontext context = NULL;
    if ((uintptr_t)stream <= LAST_DEFAULT_STREAM || !ask ||
        ask(stream, &context) != CUDA_SUCCESS || !context)
        return device_here(device);
    return device_of_context(context, device);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The 32 digits behind "GPU-" or "MIG-". */
static bool parse_uuid(const char *text, uint8_t uuid[16]) {
    const char *digits = strchr(text, '-');
    int count = 0;
    for (; digits && *digits && count < 32; digits++) {
        int digit = hex_digit(*digits);
        if (digit < 0) continue;
        uuid[count / 2] = (uint8_t)(count % 2 ? uuid[count / 2] | digit : digit << 4);
        count++;
    }
    return count == 32;
}

struct card *placement_of_nvml(nvmlDevice_t device) {
    __typeof__(&nvmlDeviceGetUUID) ask =
        (__typeof__(&nvmlDeviceGetUUID))driver_entry(ENTRY_nvmlDeviceGetUUID);
    char text[NVML_DEVICE_UUID_BUFFER_SIZE];
    uint8_t uuid[16];
    if (!ask || ask(device, text, sizeof text) != NVML_SUCCESS) return NULL;
    return parse_uuid(text, uuid) ? budgets_card(uuid) : NULL;
}

void placement_after_fork(void) {
    for (int i = 0; i < KNOWN_DEVICES; i++) atomic_store(&known[i], NULL);
}
