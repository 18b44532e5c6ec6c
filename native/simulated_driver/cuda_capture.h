/* Streams whose operations become nodes of a graph. */
#ifndef CASABA_CUDA_CAPTURE_H
#define CASABA_CUDA_CAPTURE_H

#include "cuda_wider_api.h"
#include "cuda_work.h"

struct capture {
    struct capture *next;
    CUstream origin;
    CUgraph graph;
    bool given_graph; /* the program's, not ours to free */
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool invalid;
    cuuint64_t id;
};

/* May this call be made? Calls that wait or ask end the capture they hit; so do unsafe ones
 * (allocations) by the rules of cuThreadExchangeStreamCaptureMode. */
CUresult capture_check(CUstream stream);
CUresult capture_check_context(CUcontext context);
CUresult capture_check_unsafe(void);

/* The stream captures: the operation becomes a node. */
CUresult capture_node(CUstream stream, CUgraphNodeParams *params);
CUresult capture_kernel(CUstream stream, const CUlaunchConfig *config, CUfunction function,
                        void **params, void **extra);
CUresult capture_host_function(CUstream stream, CUhostFn function, void *argument);
CUresult capture_record(CUstream stream, CUevent event);
CUresult capture_wait(CUstream stream, CUevent event);

/* Before a stream or an event goes away. */
void capture_forget(CUstream stream);
void capture_forget_event(CUevent event);

#endif
