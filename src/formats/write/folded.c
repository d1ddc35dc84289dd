/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes folded stacks, one line for each different stack, outermost frame first: what
 * flamegraph.pl and many viewers read. Threads are added up. A ';' in a name becomes ',', because
 * it would begin another frame.
 */
#include "formats/write/stacks.h"
#include "formats/write/writers.h"
#include "io/escaped.h"

#include <stdlib.h>

static enum rp_code put_stacks(struct rp_emit *e, const struct rp_trace *t, const int64_t *weight,
                               struct rp_err *err)
{
    rp_stack_path path = {0};
    enum rp_code code = RP_OK;

    for (uint32_t i = 0; code == RP_OK && i < t->samples.nstacks; i++) {
        if (!weight[i])
            continue;
        code = rp_stack_walk(t, i, &path, err);
        while (code == RP_OK && path.n) {
            /* A ';' separates frames, so in names it becomes ','. */
            const struct rp_call_frame *f = &t->samples.frame[path.at[--path.n]];
            const char *name = rp_trace_str(t, f->name), *semi;
            for (; (semi = strchr(name, ';')); name = semi + 1) {
                rp_emit_escaped(e, RP_IN_LINE, name, (size_t)(semi - name));
                rp_emit_char(e, ',');
            }
            rp_emit_escaped(e, RP_IN_LINE, name, strlen(name));
            if (f->file && f->line && !strchr(rp_trace_str(t, f->file), ';')) {
                rp_emit_text(e, " (");
                rp_emit_escaped(e, RP_IN_LINE, rp_trace_str(t, f->file),
                                rp_trace_str_len(t, f->file));
                rp_emit_char(e, ':');
                rp_emit_i64(e, f->line);
                rp_emit_char(e, ')');
            }
            if (f->kind == RP_FRAME_KERNEL)
                rp_emit_text(e, "_[k]");
            if (path.n)
                rp_emit_char(e, ';');
        }
        rp_emit_char(e, ' ');
        rp_emit_i64(e, weight[i]);
        rp_emit_char(e, '\n');
    }
    rp_vec_release(&path);
    return code;
}

static enum rp_code write_folded(const struct rp_trace *t, const char *path,
                                 const struct rp_write_options *options, struct rp_err *err)
{
    const struct rp_call_samples *s = &t->samples;
    RP_SCOPED(rp_emit_abandon) struct rp_emit e = {0};
    RP_FREED int64_t *weight = NULL;

    RP_TRY(rp_stacks_require(t, err));
    weight = calloc((size_t)s->nstacks + 1, sizeof *weight);
    RP_TRY(rp_err_need(weight, err, "writing stacks"));
    for (uint32_t i = 0; i < s->n; i++)
        if (s->stack[i] != RP_NONE)
            weight[s->stack[i]] = (int64_t)((uint64_t)weight[s->stack[i]] + (uint64_t)s->weight[i]);

    RP_TRY(rp_emit_open(&e, path, options ? options->gzip_level : 0, err));
    RP_TRY(put_stacks(&e, t, weight, err));
    return rp_emit_close(&e, err);
}

const struct rp_writer rp_writer_folded = {
    .name = "folded",
    .endings = {".folded", ".folded.gz", ".collapsed"},
    .summary = "samples as folded stacks, for flame graphs",
    .streams = true,
    .available = true,
    .samples = RP_SAMPLES_ALL,
    .write = write_folded,
};
