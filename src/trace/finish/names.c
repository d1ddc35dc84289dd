/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the class of each string that names an event. Names of Python frames are skipped, because
 * they do not show what a device does, and are most of the strings if they are recorded.
 */
#include "trace/names.h"
#include "trace/build/state.h"
#include "trace/finish/finish.h"

#define NOT_YET UINT8_MAX

enum rp_code rp_pass_names(struct rp_builder *b, struct rp_err *err)
{
    struct rp_name_matcher matcher;
    size_t n;
    const struct rp_name_pattern *table = rp_name_patterns(&n);

    rp_name_matcher_init(&matcher, table, n);
    RP_TRY(rp_vec_reserve(&b->name_class, b->str.n, err));
    b->name_class.n = b->str.n;
    uint8_t *class_of = b->name_class.at;
    memset(class_of, NOT_YET, b->str.n);
    for (uint32_t i = 0; i < b->ev.n; i++) {
        rp_str s = b->ev.name.at[i];

        if (class_of[s] == NOT_YET && b->ev.kind.at[i] != RP_KIND_PYTHON)
            class_of[s] = (uint8_t)rp_name_classify(&matcher, rp_strtab_borrow(&b->str, s),
                                                    rp_strtab_len(&b->str, s));
    }
    for (uint32_t i = 0; i < b->str.n; i++)
        if (class_of[i] == NOT_YET)
            class_of[i] = RP_NAME_NONE;
    return RP_OK;
}
