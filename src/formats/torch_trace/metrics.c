/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `compilation_metrics` and its relativesare one flat object of about a hundred keys for each
 * compile. The keys that are read are rows of a table; the rest are skipped.
 */
#include "formats/torch_trace/read.h"

#include "base/decides.h"

#include <string.h>

struct number_row {
    const char *key;
    size_t offset;
};

#define TIME(key, member)                            \
    {                                                \
        key, offsetof(struct rp_torch_times, member) \
    }
static const struct number_row time_rows[] = {
    TIME("start_time_us", start_us),
    TIME("end_time_us", end_us),
    TIME("duration_us", duration_us),
    TIME("dynamo_cumulative_compile_time_us", dynamo_us),
    TIME("aot_autograd_cumulative_compile_time_us", aot_us),
    TIME("inductor_cumulative_compile_time_us", inductor_us),
    TIME("inductor_code_gen_cumulative_compile_time_us", codegen_us),
    TIME("triton_compile_time_us", kernels_us),
    TIME("pre_grad_pass_time_us", pre_grad_us),
    TIME("joint_graph_pass_time_us", joint_us),
    TIME("post_grad_pass_time_us", post_grad_us),
    TIME("gc_time_us", gc_us),
    TIME("compile_time_autotune_time_us", autotune_us),
    TIME("dynamo_compile_time_before_restart_us", restart_us),
    TIME("structured_logging_overhead_us", logging_us),
};

#define COUNT(key, member)                             \
    {                                                  \
        key, offsetof(struct rp_torch_compile, member) \
    }
static const struct number_row count_rows[] = {
    COUNT("graph_op_count", ops),        COUNT("guard_count", guards),
    COUNT("graph_node_count", nodes),    COUNT("graph_input_count", inputs),
    COUNT("guard_latency_us", guard_us), COUNT("co_firstlineno", line),
};

static bool set_number(const struct number_row *rows, size_t n, void *record, struct rp_snip key,
                       struct rp_snip value)
{
    for (size_t i = 0; i < n; i++)
        if (rp_snip_is(key, rows[i].key)) {
            int64_t number;

            if (rp_snip_int(value, &number) && number >= 0)
                memcpy((char *)record + rows[i].offset, &number, sizeof number);
            return true;
        }
    return false;
}

struct metrics_texts { /* of a failure */
    const char *type, *reason;
};

static void set_text(struct rp_torch_compile *c, struct rp_snip key, struct rp_snip value,
                     struct rp_arena *arena, struct metrics_texts *texts, const char **version)
{
    int64_t line;

    if (value.n < 2)
        return;
    if (rp_snip_is(key, "co_name") && *value.at == '"')
        c->function = rp_snip_text(value, arena);
    else if (rp_snip_is(key, "co_filename") && *value.at == '"')
        c->path = rp_snip_text(value, arena);
    else if (rp_snip_is(key, "fail_type"))
        texts->type = rp_snip_text(value, arena);
    else if (rp_snip_is(key, "fail_reason"))
        texts->reason = rp_snip_text(value, arena);
    else if (rp_snip_is(key, "fail_user_frame_filename"))
        c->failed_at.path = rp_snip_text(value, arena);
    else if (rp_snip_is(key, "fail_user_frame_lineno") && rp_snip_int(value, &line))
        c->failed_at.line = line;
    else if (rp_snip_is(key, "cudagraph_skip_reason") && value.n > 2)
        c->cudagraphs = rp_snip_text(value, arena);
    else if (rp_snip_is(key, "recompile_reason") && !c->nreasons && value.n > 2 && *value.at == '"')
        rp_arena_append(arena, &c->reasons, &c->nreasons, rp_snip_text(value, arena));
    else if (rp_snip_is(key, "pytorch_version") && value.n > 2 && !*version)
        *version = rp_snip_text(value, arena);
}

/* The first line of "InductorError: LoweringException: …". */
static const char *failure_text(const struct metrics_texts *texts, const char *error,
                                struct rp_arena *arena)
{
    size_t n = texts->reason ? strcspn(texts->reason, "\n") : 0;

    if (!n)
        return error ? error : texts->type;
    if (texts->reason[n - 1] == ':' && texts->reason[n]) /* "backend='mine' raised:" */
        return rp_arena_textf(arena, "%s: %.*s %.*s", texts->type ? texts->type : "failed", (int)n,
                              texts->reason, (int)strcspn(texts->reason + n + 1, "\n"),
                              texts->reason + n + 1);
    return rp_arena_textf(arena, "%s: %.*s", texts->type ? texts->type : "failed", (int)n,
                          texts->reason);
}

void rp_torch_metrics_read(struct rp_snip value, enum rp_torch_metrics kind, struct rp_arena *arena,
                           struct rp_torch_compile *compile, const char **version)
{
    struct rp_torch_times times = compile->forward;
    struct metrics_texts texts = {NULL, NULL};
    struct rp_snip_walk walk;
    struct rp_snip key, member;
    int64_t autotune;

    if (kind != RP_TORCH_FORWARD_METRICS)
        times = compile->backward;
    if (!rp_snip_object(value, &walk))
        return;
    while (rp_snip_next(&walk, &key, &member)) {
        if (rp_snip_is(member, "null"))
            continue;
        if (kind == RP_TORCH_RUN_METRICS) {
            if (rp_snip_is(key, "runtime_triton_autotune_time_us") &&
                rp_snip_int(member, &autotune) && autotune > 0 &&
                compile->autotune_us <= INT64_MAX - autotune)
                compile->autotune_us += autotune;
            continue;
        }
        if (set_number(time_rows, sizeof time_rows / sizeof time_rows[0], &times, key, member))
            continue;
        if (kind != RP_TORCH_FORWARD_METRICS ||
            !set_number(count_rows, sizeof count_rows / sizeof count_rows[0], compile, key, member))
            set_text(compile, key, member, arena, &texts, version);
    }
    if (kind == RP_TORCH_FORWARD_METRICS) {
        compile->forward = times;
        compile->measured = true;
        if (texts.type)
            compile->failed = failure_text(&texts, compile->backend_error, arena);
        /* "[…] hit config.recompile_limit" is what 2.15 writes for a compile that has not begun */
        compile->limited =
            texts.type && (!compile->started ||
                           (compile->failed && (strstr(compile->failed, "recompile_limit") ||
                                                strstr(compile->failed, "cache_size_limit"))));
    } else if (kind == RP_TORCH_BACKWARD_METRICS) {
        compile->backward = times;
    }
}

const char *rp_torch_error_line(struct rp_snip traceback, const char *type, struct rp_arena *arena)
{
    struct rp_snip line, found = {traceback.at, 0};

    while (rp_snip_line(&traceback, &line)) {
        const char *colon = line.n ? memchr(line.at, ':', line.n) : NULL;
        struct rp_snip word = {line.at, colon ? (size_t)(colon - line.at) : 0};

        if (!word.n || *word.at == ' ' || memchr(word.at, ' ', word.n))
            continue;
        if (type ? rp_snip_has(word, type)
                 : memchr(word.at, '.', word.n) || rp_snip_has(word, "Error") ||
                       rp_snip_has(word, "Exception"))
            found = line;
    }
    return found.n ? rp_snip_copy(found, arena) : NULL;
}

/* ------------------------------------------------------------------ phases */

const char *const rp_torch_phase_names[RP_TORCH_PHASES] = {"restarts", "dynamo",  "passes", "aot",
                                                           "inductor", "codegen", "kernels"};

#define LONGEST_US (INT64_MAX / 16000)
RP_LIMIT(LONGEST_US, "us",
         "longer times of a compile count as this long, so that sums do not wrap");

static int64_t stated(int64_t us)
{
    return us <= 0 ? 0 : us < LONGEST_US ? us : LONGEST_US;
}

/* Takes at most `us` out of what is left. */
static int64_t take(int64_t *left, int64_t us)
{
    int64_t part = us < *left ? us : *left;

    *left -= part;
    return part;
}

/* Nested times are taken apart from the outside: a time inside another one is subtracted from
   it. */
static void add_phases(const struct rp_torch_times *t, int64_t out[RP_TORCH_PHASES])
{
    int64_t whole = stated(t->duration_us > 0 ? t->duration_us : t->dynamo_us);

    out[RP_TORCH_IN_RESTARTS] += take(&whole, stated(t->restart_us));
    out[RP_TORCH_IN_PASSES] += take(&whole, stated(t->pre_grad_us));
    int64_t aot = take(&whole, stated(t->aot_us > 0 ? t->aot_us : t->inductor_us));
    out[RP_TORCH_IN_DYNAMO] += whole;
    out[RP_TORCH_IN_PASSES] += take(&aot, stated(t->joint_us));
    int64_t inductor = take(&aot, stated(t->inductor_us));
    out[RP_TORCH_IN_AOT] += aot;
    out[RP_TORCH_IN_PASSES] += take(&inductor, stated(t->post_grad_us));
    int64_t codegen = take(&inductor, stated(t->codegen_us));
    out[RP_TORCH_IN_INDUCTOR] += inductor;
    out[RP_TORCH_IN_KERNELS] += take(&codegen, stated(t->kernels_us));
    out[RP_TORCH_IN_CODEGEN] += codegen;
}

void rp_torch_phases(const struct rp_torch_compile *compile, int64_t out_ns[RP_TORCH_PHASES])
{
    memset(out_ns, 0, RP_TORCH_PHASES * sizeof *out_ns);
    add_phases(&compile->forward, out_ns);
    add_phases(&compile->backward, out_ns);
    for (size_t i = 0; i < RP_TORCH_PHASES; i++)
        out_ns[i] *= 1000;
}
