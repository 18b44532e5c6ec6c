/* The first call a program makes to a driver: here it comes under its limits. */
#include "budget.h"
#include "drivers.h"
#include "keep_errno.h"
#include "membership.h"
#include "message.h"

static bool may_start(enum stance stance) {
    if (stance == GUARDED && budgets_announce()) message_announce();
    return stance != REFUSING;
}

EXPORTED CUresult cuInit(unsigned int flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuInit);
    if (!may_start(membership_join())) return CUDA_ERROR_NOT_INITIALIZED;
    return real(flags);
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
