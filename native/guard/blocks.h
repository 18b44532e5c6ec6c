/* What the driver gives out, with its charge: remembered after it was given, forgotten before it is
 * given back, since the driver may give the same key to another thread before we are back. */
#ifndef CASABA_BLOCKS_H
#define CASABA_BLOCKS_H

#include "cuda_api.h"
#include "handles.h"

/* After the driver's answer: keeps the charge with `key`, or gives it back. Where there is no
 * memory to remember it, `undo` gives the key back to the driver; then the answer is out of
 * memory. */
CUresult blocks_settle(CUresult result, enum handle_kind kind, uint64_t key, void *owner,
                       struct charge *charge, void (*undo)(uint64_t key));

/* kind NO_HANDLE: nothing was charged for it. */
struct handle blocks_forget(enum handle_kind kind, uint64_t key);

/* After the driver's answer: gives the charge back, or remembers the block again. */
CUresult blocks_settle_free(CUresult result, struct handle *block);

#endif
