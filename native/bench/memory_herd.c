/* One of many processes that take and give memory of every kind at random.
 *
 * usage: memory_herd SEED OPERATIONS MOST_MIB [THREADS]
 * Never asks for what would bring it over MOST_MIB, all its requests are multiples of 2 MiB, and
 * what it gave back it waits for: where the sum of all MOST_MIB is the limit, no request may be
 * refused. Prints "OPERATIONS done, REFUSALS refused", and on stderr the kind of the first one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"

enum { GRAIN_MIB = 2, MIB = 1 << 20, PLACES = 24, ROW = 4096, THREADS_MAX = 16 };

extern CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
extern CUresult cuGraphDestroy(CUgraph graph);

#define FUNCTIONS(F) \
    F(cuInit) F(cuCtxCreate_v2) F(cuCtxDestroy_v2) F(cuCtxSetCurrent) F(cuMemAlloc_v2) \
    F(cuMemAllocPitch_v2) F(cuMemAllocManaged) F(cuMemFree_v2) F(cuMemCreate) \
    F(cuMemRelease) F(cuMemExportToShareableHandle) F(cuMemImportFromShareableHandle) \
    F(cuMemMap) F(cuMemUnmap) F(cuMemAddressReserve) F(cuMemAddressFree) \
    F(cuMemAllocAsync) F(cuMemAllocFromPoolAsync) F(cuMemFreeAsync) F(cuMemPoolCreate) \
    F(cuMemPoolDestroy) F(cuStreamSynchronize) F(cuArray3DCreate_v2) F(cuArrayDestroy) \
    F(cuMipmappedArrayCreate) F(cuMipmappedArrayDestroy) F(cuGraphCreate) \
    F(cuGraphDestroy) F(cuGraphAddMemAllocNode) F(cuGraphAddMemFreeNode) \
    F(cuGraphInstantiateWithFlags) F(cuGraphLaunch) F(cuGraphExecDestroy) \
    F(cuDeviceGraphMemTrim)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} cuda;

enum kind {
    ALLOC,
    PITCH,
    MANAGED,
    VIRTUAL,
    SHARED,
    ASYNC,
    OWN_POOL,
    ARRAY,
    MIPMAPPED,
    GRAPH,
    CONTEXT,
    KINDS
};

static const char *const kind_names[KINDS] = {
    [ALLOC] = "alloc",         [PITCH] = "pitch",     [MANAGED] = "managed", [VIRTUAL] = "virtual",
    [SHARED] = "shared",       [ASYNC] = "async",     [OWN_POOL] = "own pool", [ARRAY] = "array",
    [MIPMAPPED] = "mipmapped", [GRAPH] = "graph",     [CONTEXT] = "context"};

struct place {
    size_t bytes; /* 0: empty */
    enum kind kind;
    CUdeviceptr pointer;
    CUmemGenericAllocationHandle handle;
    CUmemoryPool pool;
    void *object;
};

static void must(CUresult result, const char *what) {
    if (result == CUDA_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", what, result);
    exit(1);
}

#ifdef LINKED
static void open_driver(void) {
#define LINK(name) cuda.name = name;
    FUNCTIONS(LINK)
#undef LINK
}
#else
static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
#define FIND(name)                                                    \
    do {                                                              \
        void *address = dlsym(library, #name);                        \
        if (!address) fprintf(stderr, "no %s\n", #name), exit(2);     \
        memcpy(&cuda.name, &address, sizeof address);                 \
    } while (0);
    FUNCTIONS(FIND)
#undef FIND
}
#endif

static const CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

static CUresult take_virtual(struct place *place) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device};
    CUresult result = cuda.cuMemCreate(&place->handle, place->bytes, &prop, 0);
    if (result != CUDA_SUCCESS) return result;
    must(cuda.cuMemAddressReserve(&place->pointer, place->bytes, 0, 0, 0), "cuMemAddressReserve");
    must(cuda.cuMemMap(place->pointer, place->bytes, 0, place->handle, 0), "cuMemMap");
    must(cuda.cuMemRelease(place->handle), "cuMemRelease"); /* the mapping keeps it */
    return CUDA_SUCCESS;
}

/* Memory that is given from hand to hand: the first handle goes, the imported one keeps it. */
static CUresult take_shared(struct place *place) {
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    CUmemGenericAllocationHandle first;
    int file;
    CUresult result = cuda.cuMemCreate(&first, place->bytes, &prop, 0);
    if (result != CUDA_SUCCESS) return result;
    must(cuda.cuMemExportToShareableHandle(&file, first, prop.requestedHandleTypes, 0), "export");
    must(cuda.cuMemImportFromShareableHandle(&place->handle, (void *)(intptr_t)file,
                                             prop.requestedHandleTypes),
         "import");
    close(file);
    must(cuda.cuMemRelease(first), "cuMemRelease");
    return CUDA_SUCCESS;
}

static CUresult take_own_pool(struct place *place) {
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device};
    must(cuda.cuMemPoolCreate(&place->pool, &props), "cuMemPoolCreate");
    CUresult result =
        cuda.cuMemAllocFromPoolAsync(&place->pointer, place->bytes, place->pool, NULL);
    if (result != CUDA_SUCCESS) must(cuda.cuMemPoolDestroy(place->pool), "cuMemPoolDestroy");
    return result;
}

static CUresult take_array(struct place *place) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = ROW / 4, .Height = place->bytes / ROW, .Depth = 0,
        .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    if (place->kind == ARRAY) return cuda.cuArray3DCreate_v2((CUarray *)&place->object, &shape);
    return cuda.cuMipmappedArrayCreate((CUmipmappedArray *)&place->object, &shape, 1);
}

/* Memory that lives for one launch. */
static CUresult run_graph(struct place *place) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device},
        .bytesize = place->bytes};
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode take, give;
    must(cuda.cuGraphCreate(&graph, 0), "cuGraphCreate");
    must(cuda.cuGraphAddMemAllocNode(&take, graph, NULL, 0, &params), "cuGraphAddMemAllocNode");
    must(cuda.cuGraphAddMemFreeNode(&give, graph, &take, 1, params.dptr), "cuGraphAddMemFreeNode");
    must(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
    CUresult result = cuda.cuGraphLaunch(exec, NULL);
    if (result == CUDA_SUCCESS) result = cuda.cuGraphLaunch(exec, NULL);
    must(cuda.cuStreamSynchronize(NULL), "cuStreamSynchronize");
    must(cuda.cuGraphExecDestroy(exec), "cuGraphExecDestroy");
    must(cuda.cuGraphDestroy(graph), "cuGraphDestroy");
    must(cuda.cuDeviceGraphMemTrim(0), "cuDeviceGraphMemTrim");
    place->bytes = 0;
    return result;
}

/* A context that takes its memory with it. */
static CUresult run_context(struct place *place, CUcontext own) {
    CUcontext context;
    CUresult result = cuda.cuCtxCreate_v2(&context, 0, 0);
    if (result != CUDA_SUCCESS) return result;
    result = cuda.cuMemAlloc_v2(&place->pointer, place->bytes);
    must(cuda.cuCtxDestroy_v2(context), "cuCtxDestroy");
    must(cuda.cuCtxSetCurrent(own), "cuCtxSetCurrent");
    place->bytes = 0;
    return result;
}

static CUresult take(struct place *place, CUcontext own) {
    size_t pitch;
    switch (place->kind) {
    case PITCH:
        return cuda.cuMemAllocPitch_v2(&place->pointer, &pitch, ROW, place->bytes / ROW, 4);
    case MANAGED: return cuda.cuMemAllocManaged(&place->pointer, place->bytes, 1);
    case VIRTUAL: return take_virtual(place);
    case SHARED: return take_shared(place);
    case ASYNC: return cuda.cuMemAllocAsync(&place->pointer, place->bytes, NULL);
    case OWN_POOL: return take_own_pool(place);
    case ARRAY:
    case MIPMAPPED: return take_array(place);
    case GRAPH: return run_graph(place);
    case CONTEXT: return run_context(place, own);
    default: return cuda.cuMemAlloc_v2(&place->pointer, place->bytes);
    }
}

static void give_back(struct place *place) {
    switch (place->kind) {
    case VIRTUAL:
        must(cuda.cuMemUnmap(place->pointer, place->bytes), "cuMemUnmap");
        must(cuda.cuMemAddressFree(place->pointer, place->bytes), "cuMemAddressFree");
        break;
    case ASYNC:
    case OWN_POOL:
        must(cuda.cuMemFreeAsync(place->pointer, NULL), "cuMemFreeAsync");
        must(cuda.cuStreamSynchronize(NULL), "cuStreamSynchronize");
        if (place->kind == OWN_POOL) must(cuda.cuMemPoolDestroy(place->pool), "cuMemPoolDestroy");
        break;
    case SHARED: must(cuda.cuMemRelease(place->handle), "cuMemRelease"); break;
    case ARRAY: must(cuda.cuArrayDestroy(place->object), "cuArrayDestroy"); break;
    case MIPMAPPED:
        must(cuda.cuMipmappedArrayDestroy(place->object), "cuMipmappedArrayDestroy");
        break;
    default: must(cuda.cuMemFree_v2(place->pointer), "cuMemFree");
    }
    place->bytes = 0;
}

struct worker {
    pthread_t thread;
    unsigned int random, grains; /* a request has so many at most */
    unsigned long operations, refused;
    size_t most;
    CUcontext context;
    struct place places[PLACES];
};

/* True: something was taken, refused or given back. */
static bool work_once(struct worker *worker, size_t *held) {
    struct place *place = &worker->places[(unsigned int)rand_r(&worker->random) % PLACES];
    unsigned int grains = 1 + (unsigned int)rand_r(&worker->random) % worker->grains;
    size_t bytes = (size_t)grains * GRAIN_MIB * MIB;
    if (place->bytes) {
        *held -= place->bytes;
        give_back(place);
        return true;
    }
    if (*held + bytes > worker->most) return false;
    *place = (struct place){.bytes = bytes, .kind = (unsigned int)rand_r(&worker->random) % KINDS};
    CUresult result = take(place, worker->context);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        if (!worker->refused++) fprintf(stderr, "%s refused\n", kind_names[place->kind]);
        place->bytes = 0;
    } else {
        must(result, kind_names[place->kind]);
    }
    *held += place->bytes;
    return true;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    size_t held = 0;
    must(cuda.cuCtxSetCurrent(worker->context), "cuCtxSetCurrent");
    for (unsigned long done = 0; done < worker->operations;) done += work_once(worker, &held);
    for (int i = 0; i < PLACES; i++)
        if (worker->places[i].bytes) give_back(&worker->places[i]);
    return NULL;
}

int main(int count, char **arguments) {
    static struct worker workers[THREADS_MAX];
    unsigned long numbers[4] = {0, 0, 0, 1}, refused = 0;
    for (int i = 1; i < count && i <= 4; i++) numbers[i - 1] = strtoul(arguments[i], NULL, 10);
    unsigned long threads = numbers[3];
    if (!numbers[1] || !numbers[2] || !threads || threads > THREADS_MAX) return 2;
    CUcontext context;
    open_driver();
    must(cuda.cuInit(0), "cuInit");
    must(cuda.cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    for (unsigned long i = 0; i < threads; i++) {
        struct worker *worker = &workers[i];
        worker->random = (unsigned int)(numbers[0] + i);
        worker->operations = numbers[1] / threads;
        worker->most = numbers[2] * MIB / threads;
        worker->grains = (unsigned int)(worker->most / MIB / GRAIN_MIB / 8) + 1;
        worker->context = context;
        if (pthread_create(&worker->thread, NULL, work, worker) != 0) return 2;
    }
    for (unsigned long i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        refused += workers[i].refused;
    }
    printf("%lu done, %lu refused\n", numbers[1], refused);
    return 0;
}
