/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass counts how often each name occurs; a second one counts the different names of each
 * candidate series, which a name that occurs twice disqualifies.
 */
#include "facts/times/name_series.h"

#include "base/decides.h"
#include "base/filled.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 3
RP_DECISION(LEAST, "names", "two that differ in a number may be two things",
            "facts/annotations_that_count_are_a_series");
#define LONG 240
RP_LIMIT(LONG, "bytes", "longer names are listed one by one");

struct candidate {
    uint32_t names;
    bool spoiled;
};

/* "step *" of "step 12"; false: it does not end with a number. */
static bool make_pattern(const char *name, size_t len, char *out, size_t *n)
{
    size_t end = len;

    while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    if (end == len || !end || len > LONG)
        return false;
    memcpy(out, name, end);
    out[end] = '*';
    *n = end + 1;
    return true;
}

static enum rp_code find_series(struct rp_name_series *out, const struct rp_trace *t,
                                const uint8_t *uses, struct rp_err *err)
{
    RP_VEC(struct candidate) candidates = {0};
    enum rp_code code = RP_OK;
    char pattern[LONG + 2];
    uint32_t id;
    size_t n;

    for (rp_str s = 0; s < t->str.n && code == RP_OK; s++) {
        if (!uses[s] || !make_pattern(rp_trace_str(t, s), rp_trace_str_len(t, s), pattern, &n))
            continue;
        code = rp_strtab_intern(&out->names, pattern, n, &id, err);
        while (code == RP_OK && candidates.n <= id)
            code = rp_vec_push(&candidates, (struct candidate){0}, err);
        if (code != RP_OK || !candidates.at)
            break;
        candidates.at[id].names++;
        candidates.at[id].spoiled |= uses[s] > 1;
        out->series.at[s] = id;
    }
    for (rp_str s = 0; s < t->str.n && code == RP_OK; s++) {
        id = out->series.at[s];
        if (id != RP_NONE && candidates.at &&
            (candidates.at[id].spoiled || candidates.at[id].names < LEAST))
            out->series.at[s] = RP_NONE;
    }
    rp_vec_release(&candidates);
    return code;
}

enum rp_code rp_name_series_init(struct rp_name_series *out, const struct rp_trace *trace,
                                 struct rp_err *err)
{
    RP_FREED uint8_t *uses = NULL;

    *out = (struct rp_name_series){0};
    RP_TRY(rp_strtab_init(&out->names, err));
    RP_TRY(rp_vec_nones(&out->series, trace->str.n, err));
    uses = calloc((size_t)trace->str.n + 1, 1);
    RP_TRY(rp_err_need(uses, err, "comparing names"));
    for (rp_event e = 0; e < trace->ev.n; e++)
        if (trace->ev.kind[e] == RP_KIND_ANNOTATION && uses[trace->ev.name[e]] < 2)
            uses[trace->ev.name[e]]++;
    return find_series(out, trace, uses, err);
}

void rp_name_series_release(struct rp_name_series *s)
{
    rp_strtab_release(&s->names);
    rp_vec_release(&s->series);
}

const char *rp_name_series_of(const struct rp_name_series *s, rp_str name)
{
    uint32_t id = s->series.at ? s->series.at[name] : RP_NONE;

    return id == RP_NONE ? NULL : rp_strtab_borrow(&s->names, id);
}
