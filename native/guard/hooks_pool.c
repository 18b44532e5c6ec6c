/* Stream-ordered memory. Its free takes effect when the stream gets there, and then the memory is
 * the pool's: only what the pool has counts (pools.h). */
#include "blocks.h"
#include "drivers.h"
#include "imports.h"
#include "keep_errno.h"
#include "placement.h"
#include "pools.h"
#include "reservation.h"

/* A request of one of the two default streams, or of a stream of its own. */
struct request {
    CUdeviceptr *pointer;
    size_t bytes;
    CUstream stream;
    bool per_thread; /* the twin for per-thread default streams */
};

/* Memory that is asked for during a capture belongs to the graph: nothing is allocated yet. */
static bool captures(const struct request *request) {
    __typeof__(&cuStreamIsCapturing) ask = (__typeof__(&cuStreamIsCapturing))driver_entry(
        request->per_thread ? ENTRY_cuStreamIsCapturing_ptsz : ENTRY_cuStreamIsCapturing);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return ask && ask(request->stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult current_pool(CUdevice device, CUmemoryPool *handle) {
    __typeof__(&cuDeviceGetMemPool) ask =
        (__typeof__(&cuDeviceGetMemPool))driver_entry(ENTRY_cuDeviceGetMemPool);
    return ask ? ask(handle, device) : CUDA_ERROR_NOT_SUPPORTED;
}

static void free_async(const struct request *request) {
    __typeof__(&cuMemFreeAsync) real = (__typeof__(&cuMemFreeAsync))driver_entry(
        request->per_thread ? ENTRY_cuMemFreeAsync_ptsz : ENTRY_cuMemFreeAsync);
    if (real) real(*request->pointer, request->stream);
}

static CUresult settle(CUresult result, struct pool *pool, const struct request *request) {
    bool covered = pools_end(pool, request->bytes);
    if (result != CUDA_SUCCESS) return result;
    if (covered && pools_gave(pool, *request->pointer, request->bytes)) return result;
    free_async(request);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult from_pool(cuMemAllocFromPoolAsync_fn *real, const struct request *request,
                          CUmemoryPool handle, CUdevice device, const struct card *card) {
    struct pool *pool = pools_hold(handle, device, card);
    if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = pools_begin(pool, request->bytes);
    if (result == CUDA_SUCCESS)
        result = settle(real(request->pointer, request->bytes, handle, request->stream), pool,
                        request);
    pools_release(pool);
    return result;
}

/* By the pool's own name, so that it cannot be exchanged for another meanwhile. */
static CUresult from_current_pool(cuMemAllocAsync_fn *real, const struct request *request) {
    const struct card *card;
    CUdevice device;
    CUmemoryPool handle = NULL;
    cuMemAllocFromPoolAsync_fn *real_from =
        (__typeof__(&cuMemAllocFromPoolAsync))driver_entry(
            request->per_thread ? ENTRY_cuMemAllocFromPoolAsync_ptsz
                                : ENTRY_cuMemAllocFromPoolAsync);
    CUresult refusal = reservation_card_of_stream(request->stream, &device, &card);
    if (refusal) return refusal;
    if (!card || !real_from || captures(request))
        return real(request->pointer, request->bytes, request->stream);
    refusal = current_pool(device, &handle);
    return refusal ? refusal : from_pool(real_from, request, handle, device, card);
}

static CUresult from_named_pool(cuMemAllocFromPoolAsync_fn *real, const struct request *request,
                                CUmemoryPool handle) {
    const struct card *card;
    CUdevice device;
    CUresult refusal = reservation_card_of_stream(request->stream, &device, &card);
    if (refusal) return refusal;
    if (!handle || captures(request))
        return real(request->pointer, request->bytes, handle, request->stream);
    return from_pool(real, request, handle, device, card);
}

EXPORTED CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAllocAsync);
    return from_current_pool(real, &(struct request){pointer, bytes, stream, false});
}

EXPORTED CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAllocAsync_ptsz);
    return from_current_pool(real, &(struct request){pointer, bytes, stream, true});
}

EXPORTED CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                          CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAllocFromPoolAsync);
    return from_named_pool(real, &(struct request){pointer, bytes, stream, false}, pool);
}

EXPORTED CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes,
                                               CUmemoryPool pool, CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAllocFromPoolAsync_ptsz);
    return from_named_pool(real, &(struct request){pointer, bytes, stream, true}, pool);
}

/* Blocks without a pool here may be those of imported pools. */
static CUresult free_ordered(cuMemFreeAsync_fn *real, CUdeviceptr pointer, CUstream stream) {
    const struct pooled pooled = pools_forget(pointer);
    struct opened *opened = pooled.pool ? NULL : imports_forget(pointer);
    struct handle block = pooled.pool || opened ? (struct handle){.kind = NO_HANDLE}
                                                : blocks_forget(MEMORY, pointer);
    CUresult result = real(pointer, stream);
    if (result == CUDA_SUCCESS) imports_withdraw(pointer, &block.charge);
    imports_settle_free(result, pointer, opened);
    pools_settle_free(result, &pooled);
    return blocks_settle_free(result, &block);
}

EXPORTED CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemFreeAsync);
    return free_ordered(real, pointer, stream);
}

EXPORTED CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemFreeAsync_ptsz);
    return free_ordered(real, pointer, stream);
}

/* A pool on the host has no card, and so no limit. */
EXPORTED CUresult cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *props) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemPoolCreate);
    const struct card *card = NULL;
    bool on_device = props && props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    CUresult result = on_device ? reservation_card_on(props->location.id, &card) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) result = real(handle, props);
    if (result != CUDA_SUCCESS) return result;
    struct pool *pool = pools_hold(*handle, on_device ? props->location.id : -1, card);
    if (pool) pools_release(pool);
    return result;
}

EXPORTED CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemPoolDestroy);
    struct pool *pool = pools_hold_known(handle);
    if (!pool) return real(handle);
    pools_retire(pool);
    CUresult result = real(handle);
    pools_settle_retired(result, pool);
    pools_release(pool);
    return result;
}

EXPORTED CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t bytes_to_keep) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemPoolTrimTo);
    CUresult result = real(handle, bytes_to_keep);
    pools_settle();
    return result;
}

EXPORTED CUresult cuDeviceGraphMemTrim(CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuDeviceGraphMemTrim);
    CUresult result = real(device);
    pools_settle();
    return result;
}
