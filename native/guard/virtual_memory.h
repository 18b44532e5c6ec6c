/* Physical memory that is made, mapped and released apart (cuMemCreate and what belongs to it). */
#ifndef CASABA_VIRTUAL_MEMORY_H
#define CASABA_VIRTUAL_MEMORY_H

void virtual_memory_after_fork(void);

#endif
