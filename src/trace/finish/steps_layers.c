/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of a model that are alike look like steps if only one pass was recorded. But each step
 * runs all parts of the model, whereas each layer has its own parts.
 */
#include "trace/finish/steps.h"

#include "base/filled.h"
#include "base/order.h"

#include <string.h>

/* Whether a name is of one part of a model among equal ones: "FSDP::pre_forward (block.3.layer.1)",
   "nn.Module: T5Block_3". */
static bool names_numbered_part(const char *name)
{
    char before = strncmp(name, "nn.Module: ", 11) != 0 ? '.' : '_';

    for (const char *at = strchr(name, before); at; at = strchr(at + 1, before)) {
        size_t digits = strspn(at + 1, "0123456789");

        if (digits && (at[1 + digits] == '\0' || strchr(".) ", at[1 + digits])))
            return true;
    }
    return false;
}

enum rp_code rp_steps_are_layers(const struct rp_builder *b, bool *out, struct rp_err *err)
{
    RP_VEC_LOCAL(uint32_t, step_of); /* by string: 1 + the only step that runs it, or RP_NONE */
    size_t once = 0, often = 0, s;

    RP_TRY(rp_vec_zeros(&step_of, b->str.n, err));
    for (rp_event e = 0; e < b->ev.n; e++) {
        rp_str name = b->ev.name.at[e];
        uint32_t i;

        if ((b->ev.kind.at[e] != RP_KIND_ANNOTATION && b->ev.kind.at[e] != RP_KIND_PYTHON) ||
            step_of.at[name] == RP_NONE || !names_numbered_part(rp_strtab_borrow(&b->str, name)))
            continue;
        RP_LOWER_BOUND(i, b->steps.n, b->steps.at[i].begin_ns <= b->ev.ts_ns.at[e]);
        if (i)
            step_of.at[name] = !step_of.at[name] || step_of.at[name] == i ? i : RP_NONE;
    }
    for (s = 0; s < b->str.n; s++) {
        once += step_of.at[s] && step_of.at[s] != RP_NONE;
        often += step_of.at[s] == RP_NONE;
    }
    *out = once > b->steps.n / 2 && once > often;
    return RP_OK;
}
