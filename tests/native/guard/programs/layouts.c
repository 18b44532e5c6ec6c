/* Prints the offset of every field and the size of every record of the shared files. */
#include <stddef.h>
#include <stdio.h>

#include "layouts.h"

int main(void) {
#define CONST(name, value)
#define STRUCT(name)                                                                  \
    {                                                                                 \
        typedef struct name record;                                                   \
        const char *title = #name;
#define END(name)                                                                     \
        printf("sizeof %s %zu\n", title, sizeof(record));                             \
    }
#define FIELD(c_type, name) printf("%s." #name " %zu\n", title, offsetof(record, name));
#define FIELDS(c_type, name, count) FIELD(c_type, name)
#define ARRAY(type, name, count) FIELD(type, name)
#include "policy.def"
#include "region.def"
    return 0;
}
