/* Shows what the driver says of each device. */
#include <stdio.h>

#include "doors.h"

static void print_uuid(int device)
{
    CUuuid uuid;
    must(cuda.cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid");
    printf("  uuid: GPU-");
    for (int i = 0; i < 16; i++)
        printf(i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid.bytes[i]);
    putchar('\n');
}

static int attribute(CUdevice_attribute attribute, int device)
{
    int value = 0;
    must(cuda.cuDeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute");
    return value;
}

static void print_memory(int device)
{
    CUcontext context;
    size_t total = 0, free_now = 0, total_now = 0;
    must(cuda.cuDeviceTotalMem_v2(&total, device), "cuDeviceTotalMem");
    must(cuda.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuda.cuMemGetInfo_v2(&free_now, &total_now), "cuMemGetInfo");
    must(cuda.cuDevicePrimaryCtxRelease_v2(device), "cuDevicePrimaryCtxRelease");
    printf("  total memory: %zu MiB\n  free now: %zu MiB of %zu MiB\n", total / MIB,
           free_now / MIB, total_now / MIB);
}

static void print_device(int device)
{
    char name[100], bus_id[32];
    must(cuda.cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
    must(cuda.cuDeviceGetPCIBusId(bus_id, sizeof bus_id, device), "cuDeviceGetPCIBusId");
    printf("device %d: %s\n", device, name);
    print_uuid(device);
    printf("  bus id: %s\n  compute capability: %d.%d\n  multiprocessors: %d\n", bus_id,
           attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
           attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
           attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    print_memory(device);
}

int main(void)
{
    int count = 0;
    doors_open();
    must(cuda.cuInit(0), "cuInit");
    must(cuda.cuDeviceGetCount(&count), "cuDeviceGetCount");
    for (int device = 0; device < count; device++)
        print_device(device);
    return 0;
}
