/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps for later calls how good predictions were. Only measurements of this call count: an earlier
 * call kept its own rows if it was asked to. Verdicts that the noise does not allow do not count,
 * nor do programs on the CPU, which `simulate` does not predict.
 */
#include "outcomes/outcomes.h"
#include "try/session.h"

#include <math.h>

static bool is_known(const struct rp_try_variant *v)
{
    return v->state == RP_TRY_MEASURED && v->predicted && v->change > -1 &&
           isfinite(v->interval.median) &&
           (v->verdict == RP_TRY_FASTER || v->verdict == RP_TRY_SLOWER ||
            v->verdict == RP_TRY_EQUAL);
}

enum rp_code rp_try_learn(const struct rp_try_session *s, size_t *kept, struct rp_err *err)
{
    struct rp_outcome list[RP_TRY_CHANGES_MOST + 4];
    char changes[RP_TRY_CHANGES_MOST + 4][RP_TRY_WHAT_IF];
    size_t n = 0;

    for (size_t i = 2; i < s->nvariants; i++) {
        const struct rp_try_variant *v = &s->variants[i];

        rp_try_what_if(v, changes[n], sizeof changes[n]);
        if (is_known(v) && *changes[n]) {
            list[n] = (struct rp_outcome){.device = rp_try_fact(&s->facts, "device-name"),
                                          .framework = rp_try_fact(&s->facts, "framework"),
                                          .change = changes[n],
                                          .parameters = rp_try_fact_number(&s->facts, "parameters"),
                                          .predicted = 1 + v->change,
                                          .measured = exp(v->interval.median)};
            n++;
        }
    }
    *kept = n;
    return n ? rp_outcomes_add(list, n, err) : RP_OK;
}
