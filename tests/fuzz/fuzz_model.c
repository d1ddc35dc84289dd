/* SPDX-License-Identifier: Apache-2.0 */
/* Cost models and tables of measured operators: read, asked for times, and written. */
#include "cost/learn/learned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void use_model(const char *text)
{
    struct rp_learned m;
    struct rp_learned_time t;
    struct rp_out *out;
    size_t i;

    if (rp_learned_parse(&m, "fuzz", text, NULL) == RP_OK) {
        for (i = 0; i < m.samples.rows.n && i < 64; i++) {
            struct rp_sample s = m.samples.rows.at[i];

            s.dim[0] += 1;
            rp_learned_predict(&m, &s, &t);
            s.type = RP_NUMBER_FP16;
            rp_learned_predict(&m, &s, &t);
        }
        if (rp_out_open_memory(&out, NULL) == RP_OK) {
            rp_learned_write(&m, out);
            rp_out_abandon(out);
        }
    }
    rp_learned_release(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_samples samples = {0};
    char *text = size < 65536 ? calloc(size + 1, 1) : NULL;

    if (!text)
        return 0;
    memcpy(text, data, size);
    if (!strncmp(text, "reprise-model", 13))
        use_model(text);
    else if (rp_samples_parse_csv(&samples, "fuzz", text, "H200", true, NULL) == RP_OK)
        rp_samples_merge(&samples, NULL);
    rp_samples_release(&samples);
    free(text);
    return 0;
}
