/* Moving bytes. The arguments are checked over the whole length, but only the first MOVED_MAX bytes
 * of one operation are really moved: enough to see that contents arrive, and a program that fills
 * gigabytes of a virtual card does not fill the host's memory. Work is done at once. */
#include <string.h>

#include "cuda_capture.h"
#include "cuda_virtual.h"

enum { MOVED_MAX = 16 << 20 };

static size_t moved(size_t bytes)
{
    return bytes < MOVED_MAX ? bytes : MOVED_MAX;
}

static const struct range *device_range(CUdeviceptr pointer)
{
    const struct range *range = range_at(&driver.blocks, pointer);
    if (range != NULL)
        return range;
    const struct mapping *mapping = range_at(&driver.mapped, pointer);
    return mapping != NULL && mapping->accessible ? &mapping->range : NULL;
}

static bool is_device_memory(CUdeviceptr pointer, size_t bytes)
{
    while (bytes > 0) {
        const struct range *range = device_range(pointer);
        if (range == NULL)
            return false;
        size_t here = range->size - (size_t)(pointer - range->base);
        if (bytes <= here)
            return true;
        pointer += here;
        bytes -= here;
    }
    return true;
}

/* Host memory is taken at its word, as long as it does not begin as device memory. */
static bool is_any_memory(CUdeviceptr pointer, size_t bytes)
{
    return device_range(pointer) == NULL ? pointer != 0 : is_device_memory(pointer, bytes);
}

typedef bool (*check_fn)(CUdeviceptr pointer, size_t bytes);

static CUresult copy(CUdeviceptr to, check_fn check_to, CUdeviceptr from, check_fn check_from,
                     size_t bytes, CUstream stream)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != NULL) {
        CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
        return driver_leave(capture_node(stream, &node));
    }
    if (bytes > 0 && (!check_to(to, bytes) || !check_from(from, bytes)))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (bytes > 0)
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, moved(bytes));
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(to, is_any_memory, from, is_any_memory, bytes, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy(to, is_device_memory, (CUdeviceptr)(uintptr_t)from, is_any_memory, bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy((CUdeviceptr)(uintptr_t)to, is_any_memory, from, is_device_memory, bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(to, is_device_memory, from, is_device_memory, bytes, stream);
}

static CUresult fill(CUdeviceptr pointer, const void *value, size_t width, size_t count,
                     CUstream stream)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != NULL) {
        CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
        return driver_leave(capture_node(stream, &node));
    }
    if (count > SIZE_MAX / width || pointer % width != 0 ||
        !is_device_memory(pointer, count * width))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    char *at = (char *)(uintptr_t)pointer;
    for (size_t done = 0; done < moved(count * width); done += width)
        memcpy(at + done, value, width);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, size_t count, CUstream stream)
{
    return fill(pointer, &value, sizeof value, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr pointer, unsigned short value, size_t count, CUstream stream)
{
    return fill(pointer, &value, sizeof value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned int value, size_t count, CUstream stream)
{
    return fill(pointer, &value, sizeof value, count, stream);
}

/* The other entry points differ in the default stream and, copies, in waiting for it. */
#define SYNCHRONOUS(name, async, stream, to_type, from_type, wait)     \
    CUresult name(to_type to, from_type from, size_t bytes)            \
    {                                                                  \
        CUresult result = async(to, from, bytes, stream);              \
        return result == CUDA_SUCCESS ? wait(stream) : result;         \
    }
#define ENTRIES(name, async, twin, async_twin, to_type, from_type, wait)         \
    SYNCHRONOUS(name, async, NULL, to_type, from_type, wait)                     \
    SYNCHRONOUS(twin, async, per_thread(NULL), to_type, from_type, wait)         \
    CUresult async_twin(to_type to, from_type from, size_t bytes, CUstream stream) \
    {                                                                            \
        return async(to, from, bytes, per_thread(stream));                       \
    }
#define COPIES(name, async, twin, async_twin, to_type, from_type) \
    ENTRIES(name, async, twin, async_twin, to_type, from_type, cuStreamSynchronize)
#define FILLS(name, async, twin, async_twin, to_type, from_type) \
    ENTRIES(name, async, twin, async_twin, to_type, from_type, no_wait)

static CUresult no_wait(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

COPIES(cuMemcpy, cuMemcpyAsync, cuMemcpy_ptds, cuMemcpyAsync_ptsz, CUdeviceptr, CUdeviceptr)
COPIES(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, cuMemcpyHtoD_v2_ptds, cuMemcpyHtoDAsync_v2_ptsz,
       CUdeviceptr, const void *)
COPIES(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, cuMemcpyDtoH_v2_ptds, cuMemcpyDtoHAsync_v2_ptsz,
       void *, CUdeviceptr)
COPIES(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, cuMemcpyDtoD_v2_ptds, cuMemcpyDtoDAsync_v2_ptsz,
       CUdeviceptr, CUdeviceptr)
FILLS(cuMemsetD8_v2, cuMemsetD8Async, cuMemsetD8_v2_ptds, cuMemsetD8Async_ptsz, CUdeviceptr,
       unsigned char)
FILLS(cuMemsetD16_v2, cuMemsetD16Async, cuMemsetD16_v2_ptds, cuMemsetD16Async_ptsz, CUdeviceptr,
       unsigned short)
FILLS(cuMemsetD32_v2, cuMemsetD32Async, cuMemsetD32_v2_ptds, cuMemsetD32Async_ptsz, CUdeviceptr,
       unsigned int)
