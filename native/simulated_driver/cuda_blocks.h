/* Memory by pointer, however it came to be. */
#ifndef CASABA_CUDA_BLOCKS_H
#define CASABA_CUDA_BLOCKS_H

#include "cuda_driver.h"
#include "cuda_ranges.h"

enum block_kind { BLOCK_DEVICE, BLOCK_LOW_DEVICE, BLOCK_HOST, BLOCK_POOL, BLOCK_GRAPH,
                  BLOCK_IMPORTED, BLOCK_EXTERNAL };

struct block {
    struct range range;
    struct resource resource; /* context NULL: of graphs */
    enum block_kind kind;
    unsigned card;
    uint64_t charged;   /* bytes of the card, given back with the block */
    CUmemoryPool pool;  /* BLOCK_POOL */
    unsigned holders;   /* BLOCK_GRAPH: nodes and executable graphs; BLOCK_IMPORTED: times opened */
    bool allocated;     /* BLOCK_GRAPH: now */
    bool shared;        /* its bytes are accounted in card_shares.h, with this number */
    unsigned share;
};

/* Makes a block in the current context and charges the card for it; other kinds than the
 * first two are charged elsewhere or not at all. */
CUresult block_make(struct block **block, size_t bytes, enum block_kind kind);

/* Addresses for a graph's memory, which is charged when the graph is launched. One holder. */
CUresult block_make_graph(struct block **block, size_t bytes, unsigned card);
void block_drop(struct block *block);

/* What one process gives another to tell a shared block. */
struct ticket {
    uint32_t magic, number;
    uint64_t key, size;
};

/* Shares a block, whose bytes leave the process's own account, and joins another's as one of this
 * process; see card_shares.h. */
CUresult block_share(struct block *block, struct ticket *ticket);
CUresult block_join(struct block **block, const struct ticket *ticket, enum block_kind kind);

struct block *block_of(struct resource *resource);

/* The block that begins at the address, else NULL. */
struct block *block_at(CUdeviceptr pointer);

/* Gives back a block that the program frees. */
void block_free(struct block *block);

#endif
