/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes samples of call stacks into formats of time lines, beside the events. Such a format has no
 * place for samples without a time; rp_samples_untimed counts those that are left out.
 */
#include "formats/write/emit_json.h"
#include "io/proto_write.h"

uint32_t rp_samples_untimed(const struct rp_trace *t);

/* Writes the keys stackFrames, samples and RP_CHROME_WEIGHTS of Chrome's JSON, each with a comma
   before it; nothing if the trace has no samples with a time. */
void rp_samples_put_json(struct rp_emit *e, struct rp_emit_json *json, const struct rp_trace *t);

struct rp_perfetto_sampled {
    const struct rp_trace *t;
    struct rp_emit *e;
    struct rp_proto_writer *w;
    uint64_t sequence;
    int64_t shift_ns;
    /* gives the numbers of the process and the thread of a track. */
    void (*thread)(const void *user, rp_track track, uint64_t *pid, uint64_t *tid);
    const void *user;
};

/* Writes Perfetto's packets of samples. */
enum rp_code rp_samples_put_perfetto(const struct rp_perfetto_sampled *to, struct rp_err *err);

/* {"unit":"ns","name":"cpu"} */
void rp_samples_put_weights(struct rp_emit *e, const struct rp_trace *t);
