/* Arrays: opaque memory, accounted in the bytes of its elements. */
#include <stdlib.h>

#include "cuda_capture.h"

enum { ARRAY_ALIGNMENT = 65536, LEVELS_MAX = 32 };

struct CUarray_st {
    struct resource resource;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    uint64_t bytes, charged;
    bool is_level;
};

struct CUmipmappedArray_st {
    struct resource resource;
    unsigned levels;
    uint64_t bytes, charged;
    struct CUarray_st level[LEVELS_MAX];
};

static uint64_t element_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
    }
}

static uint64_t at_least_1(uint64_t value)
{
    return value > 0 ? value : 1;
}

/* 0: not an array that can be. */
static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    unsigned channels = descriptor->NumChannels;
    if (descriptor->Width == 0 || (channels != 1 && channels != 2 && channels != 4))
        return 0;
    uint64_t size = element_bytes(descriptor->Format) * channels, whole;
    if (__builtin_mul_overflow(size, descriptor->Width, &whole) ||
        __builtin_mul_overflow(whole, at_least_1(descriptor->Height), &whole) ||
        __builtin_mul_overflow(whole, at_least_1(descriptor->Depth), &whole))
        return 0;
    return whole;
}

/* Sparse arrays and those that are mapped later have no memory of their own. */
static uint64_t charge_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint64_t bytes)
{
    return descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING) ? 0 : bytes;
}

static CUresult begin(struct resource *resource, enum resource_kind kind, uint64_t charge)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result == CUDA_SUCCESS)
        result = capture_check_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (charge > 0 && (fault_refuses_allocation() ||
                       !account_charge(&driver.account, context->card, charge)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    resource_add(resource, context, kind);
    return CUDA_SUCCESS;
}

static CUresult make(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    uint64_t bytes = bytes_of(descriptor);
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUarray made = calloc(1, sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->descriptor = *descriptor;
    made->bytes = bytes;
    made->charged = charge_of(descriptor, bytes);
    CUresult result = begin(&made->resource, RESOURCE_ARRAY, made->charged);
    if (result == CUDA_SUCCESS)
        *array = made;
    else
        free(made);
    return result;
}

void array_destroy(struct resource *resource)
{
    CUarray array = (CUarray)resource;
    account_release(&driver.account, resource->context->card, array->charged);
    resource_remove(resource);
    free(array);
}

void mipmap_destroy(struct resource *resource)
{
    CUmipmappedArray array = (CUmipmappedArray)resource;
    account_release(&driver.account, resource->context->card, array->charged);
    resource_remove(resource);
    free(array);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    return driver_leave(array == NULL || descriptor == NULL ? CUDA_ERROR_INVALID_VALUE
                                                            : make(array, descriptor));
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor)
{
    if (descriptor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR wide = {descriptor->Width, descriptor->Height,
                                          descriptor->Depth, descriptor->Format,
                                          descriptor->NumChannels, descriptor->Flags};
    return cuArray3DCreate_v2(array, &wide);
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
    if (descriptor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR deep = {descriptor->Width, descriptor->Height, 0,
                                          descriptor->Format, descriptor->NumChannels, 0};
    return cuArray3DCreate_v2(array, &deep);
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor)
{
    if (descriptor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY_DESCRIPTOR wide = {descriptor->Width, descriptor->Height, descriptor->Format,
                                        descriptor->NumChannels};
    return cuArrayCreate_v2(array, &wide);
}

static CUresult enter_array(CUarray array)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    return array != NULL && array->resource.kind == RESOURCE_ARRAY
               ? CUDA_SUCCESS
               : driver_leave(CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuArrayDestroy(CUarray array)
{
    CUresult result = enter_array(array);
    if (result != CUDA_SUCCESS)
        return result;
    if (array->is_level)
        return driver_leave(CUDA_ERROR_INVALID_HANDLE);
    array_destroy(&array->resource);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array)
{
    CUresult result = enter_array(array);
    if (result != CUDA_SUCCESS)
        return result;
    if (descriptor == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *descriptor = array->descriptor;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR deep;
    if (descriptor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuArray3DGetDescriptor_v2(&deep, array);
    if (result == CUDA_SUCCESS)
        *descriptor = (CUDA_ARRAY_DESCRIPTOR){deep.Width, deep.Height, deep.Format,
                                              deep.NumChannels};
    return result;
}

static CUDA_ARRAY_MEMORY_REQUIREMENTS requirements_of(uint64_t bytes)
{
    return (CUDA_ARRAY_MEMORY_REQUIREMENTS){
        .size = (bytes + ARRAY_ALIGNMENT - 1) / ARRAY_ALIGNMENT * ARRAY_ALIGNMENT,
        .alignment = ARRAY_ALIGNMENT};
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array,
                                      CUdevice device)
{
    CUresult result = enter_array(array);
    if (result != CUDA_SUCCESS)
        return result;
    if (requirements == NULL || !is_device(device))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *requirements = requirements_of(array->bytes);
    return driver_leave(CUDA_SUCCESS);
}

static size_t halved(size_t value)
{
    return value > 1 ? value / 2 : value;
}

/* Each level is half as large as the one before in every direction. */
static bool make_levels(CUmipmappedArray array, CUDA_ARRAY3D_DESCRIPTOR descriptor)
{
    for (unsigned i = 0; i < array->levels; i++) {
        uint64_t bytes = bytes_of(&descriptor);
        if (bytes == 0 || array->bytes + bytes < bytes)
            return false;
        array->level[i] = (struct CUarray_st){
            .resource.kind = RESOURCE_ARRAY, .descriptor = descriptor, .bytes = bytes,
            .is_level = true};
        array->bytes += bytes;
        descriptor.Width = halved(descriptor.Width);
        descriptor.Height = halved(descriptor.Height);
        descriptor.Depth = halved(descriptor.Depth);
    }
    return true;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                unsigned int levels)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (array == NULL || descriptor == NULL || levels == 0 || levels > LEVELS_MAX)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    CUmipmappedArray made = calloc(1, sizeof *made);
    if (made == NULL)
        return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
    made->levels = levels;
    result = make_levels(made, *descriptor) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    made->charged = charge_of(descriptor, made->bytes);
    if (result == CUDA_SUCCESS)
        result = begin(&made->resource, RESOURCE_MIPMAP, made->charged);
    if (result == CUDA_SUCCESS)
        *array = made;
    else
        free(made);
    return driver_leave(result);
}

static CUresult enter_mipmap(CUmipmappedArray array)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    return array != NULL && array->resource.kind == RESOURCE_MIPMAP
               ? CUDA_SUCCESS
               : driver_leave(CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuMipmappedArrayGetLevel(CUarray *level_array, CUmipmappedArray array, unsigned int level)
{
    CUresult result = enter_mipmap(array);
    if (result != CUDA_SUCCESS)
        return result;
    if (level_array == NULL || level >= array->levels)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *level_array = &array->level[level];
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements,
                                               CUmipmappedArray array, CUdevice device)
{
    CUresult result = enter_mipmap(array);
    if (result != CUDA_SUCCESS)
        return result;
    if (requirements == NULL || !is_device(device))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *requirements = requirements_of(array->bytes);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    CUresult result = enter_mipmap(array);
    if (result != CUDA_SUCCESS)
        return result;
    mipmap_destroy(&array->resource);
    return driver_leave(CUDA_SUCCESS);
}
