/* Memory of other processes, and of other programming interfaces, that is open here by pointer. */
#ifndef CASABA_IMPORTS_H
#define CASABA_IMPORTS_H

#include "account.h"
#include "cuda_api.h"

struct opened;

/* Freeing such memory takes two steps, as with all memory. NULL: it is not of this sort. */
struct opened *imports_forget(CUdeviceptr pointer);
void imports_settle_free(CUresult result, CUdeviceptr pointer, struct opened *opened);

/* Memory of this process was freed; if it was shared, its charge may have to stay. */
void imports_withdraw(CUdeviceptr pointer, struct charge *charge);

void imports_after_fork(void);

#endif
