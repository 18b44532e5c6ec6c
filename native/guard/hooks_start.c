/* The first call a program makes to a driver: here it comes under its limits. */
#include "budget.h"
#include "drivers.h"
#include "keep_errno.h"
#include "membership.h"
#include "message.h"
#include "placement.h"

static bool may_start(enum stance stance) {
    if (stance == GUARDED && budgets_announce()) message_announce();
    return stance != REFUSING;
}

/* A program may hide some of its cards from itself, but not all. Where none of those that it sees
 * has a budget, the policy is not for this machine. */
static bool has_known_card(void) {
    __typeof__(&cuDeviceGetCount) ask =
        (__typeof__(&cuDeviceGetCount))driver_entry(ENTRY_cuDeviceGetCount);
    int count = 0;
    if (!ask || ask(&count) != CUDA_SUCCESS) return true;
    bool found = count == 0;
    for (CUdevice device = 0; !found && device < count; device++)
        found = placement_of_device(device) != NULL;
    return found;
}

EXPORTED CUresult cuInit(unsigned int flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuInit);
    membership_refuse(false);
    enum stance stance = membership_join();
    if (!may_start(stance)) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real(flags);
    if (result != CUDA_SUCCESS || stance != GUARDED || has_known_card()) return result;
    membership_refuse(true);
    budgets_refuse_cards();
    return CUDA_ERROR_NOT_INITIALIZED;
}

EXPORTED nvmlReturn_t nvmlInit(void) {
    KEEP_ERRNO;
    REAL_NVML(nvmlInit);
    if (!may_start(membership_look())) return NVML_ERROR_NO_PERMISSION;
    return real();
}

EXPORTED nvmlReturn_t nvmlInit_v2(void) {
    KEEP_ERRNO;
    REAL_NVML(nvmlInit_v2);
    if (!may_start(membership_look())) return NVML_ERROR_NO_PERMISSION;
    return real();
}

EXPORTED nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    KEEP_ERRNO;
    REAL_NVML(nvmlInitWithFlags);
    if (!may_start(membership_look())) return NVML_ERROR_NO_PERMISSION;
    return real(flags);
}
