/* Memory nodes of graphs. The card backs them when the graph is first launched or uploaded, and
 * keeps what it gave for later launches, until it is trimmed. */
#ifndef CASABA_GRAPH_MEMORY_H
#define CASABA_GRAPH_MEMORY_H

#include <stdatomic.h>

#include "cuda_api.h"

/* Executable graphs with memory nodes: without any, launches are not looked at. */
extern atomic_uint graph_memory_known __attribute__((visibility("hidden")));

/* Calls the driver's cuGraphLaunch or cuGraphUpload with memory reserved for the graph's nodes. */
CUresult graph_memory_back(cuGraphLaunch_fn *real, CUgraphExec exec, CUstream stream);

static inline CUresult graph_memory_launch(cuGraphLaunch_fn *real, CUgraphExec exec,
                                           CUstream stream) {
    if (!atomic_load_explicit(&graph_memory_known, memory_order_relaxed)) return real(exec, stream);
    return graph_memory_back(real, exec, stream);
}

#endif
