/* C view of the files shared with Python: policy.def, region.def, schedule.def, host_paths.def. */
#ifndef CASABA_LAYOUTS_H
#define CASABA_LAYOUTS_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t atomic_u64;
typedef _Atomic uint32_t atomic_u32;

#define CONST(name, value) enum { name = value };
#define STRUCT(name) struct name {
#define END(name) };
#define FIELD(c_type, name) c_type name;
#define FIELDS(c_type, name, count) c_type name[count];
#define ARRAY(record, name, count) struct record name[count];
#include "policy.def"
#include "region.def"
#include "schedule.def"
#undef CONST
#undef STRUCT
#undef END
#undef FIELD
#undef FIELDS
#undef ARRAY

#define PATH(name, text) static const char PATH_##name[] __attribute__((unused)) = text;
#include "host_paths.def"
#undef PATH

_Static_assert(sizeof(struct policy_file) == POLICY_SIZE, "policy file");
_Static_assert(sizeof(struct region_file) == REGION_SIZE, "region file");
_Static_assert(sizeof(struct schedule_file) == SCHEDULE_SIZE, "schedule file");

#endif
