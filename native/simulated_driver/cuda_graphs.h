/* Graphs: nodes in the order of their making, which is also the order of their work, since one
 * process's work is served in series. A node only comes behind nodes that were made before it; an
 * edge that is added later against that order is refused. */
#ifndef CASABA_CUDA_GRAPHS_H
#define CASABA_CUDA_GRAPHS_H

#include "cuda_blocks.h"
#include "cuda_wider_api.h"
#include "cuda_work.h"

struct CUgraphNode_st {
    CUgraphNode next;
    CUgraph graph;
    size_t number; /* in the graph, from 0 */
    bool mark;     /* used by one search */
    struct node_set after;
    uint64_t work_ns;
    struct block *block; /* of memory nodes, held */
    CUgraphNodeParams params;
};

struct CUgraph_st {
    CUgraphNode first, last;
    size_t count;
};

bool node_set_copy(struct node_set *to, const CUgraphNode *nodes, size_t count);
bool node_set_add(struct node_set *to, const CUgraphNode *nodes, size_t count);
void node_set_clear(struct node_set *set);

CUgraph graph_make(void);
void graph_free(CUgraph graph);

/* Takes the node's type and settings from `params`, which for memory also get the address. */
CUresult node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                  CUgraphNodeParams *params);

/* Memory of the graphs of one card: taken from the card when a launch needs more of it than there
 * is, and kept until it is trimmed. */

/* Grows (or shrinks) what is used and, on the way, needs `peak` bytes more. */
CUresult graph_memory_use(unsigned card, uint64_t peak, int64_t change);
void graph_memory_trim(unsigned card);

#endif
