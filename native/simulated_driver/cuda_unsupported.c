/* Without the declarations of cuda_api.h: what these functions would take does not matter. */
enum { NOT_SUPPORTED = 801 };

#define EXPORT(base, version, symbol)                          \
    __attribute__((visibility("default"))) int symbol(void);   \
    int symbol(void)                                           \
    {                                                          \
        return NOT_SUPPORTED;                                  \
    }
#define TWIN EXPORT
#include "cuda_unsupported.def"
#undef EXPORT
#undef TWIN
