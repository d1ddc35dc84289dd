/* SPDX-License-Identifier: Apache-2.0 */
/* The list of exporters as one record. */
#include "opt/export/exports.h"

static const struct rp_field exports_fields[] = {
#define EXPORT_FIELD(name, title, doc) \
    RP_FIELD_RECORD(struct rp_opt_exports, name, &rp_opt_##name##_type, title, doc, 0),
    RP_OPT_EXPORTS(EXPORT_FIELD)
#undef EXPORT_FIELD
        RP_FIELD_END};

const struct rp_type rp_opt_exports_type = {"exports", sizeof(struct rp_opt_exports),
                                            exports_fields, NULL};

void rp_opt_exports_fill(const struct rp_opt_plan *plan, struct rp_arena *arena,
                         struct rp_opt_exports *out)
{
#define EXPORT_FILL(name, title, doc) rp_opt_##name##_fill(plan, arena, &out->name);
    RP_OPT_EXPORTS(EXPORT_FILL)
#undef EXPORT_FILL
}
