/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the outputs of a replay against a file, recorded outputs, or another engine, which runs
 * the program once for that.
 */
#include "replay/replay.h"

#include "exec/data/signature.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- outputs ---- */

static const char *place_text(struct rp_arena *arena, const struct rp_tensor *t, size_t at)
{
    int64_t index[RP_TENSOR_RANK];
    char text[640];
    size_t n = 1;

    for (size_t k = t->rank; k-- > 0;) {
        index[k] = (int64_t)at % t->dims[k];
        at /= (size_t)t->dims[k];
    }
    text[0] = '[';
    for (size_t k = 0; k < t->rank; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", k ? "," : "",
                              (long long)index[k]);
    snprintf(text + n, sizeof text - n, "]");
    return rp_arena_strdup(arena, text);
}

enum rp_code rp_replay_describe(struct rp_arena *arena, const struct rp_tensor *t, size_t i,
                                struct rp_replay_output *row, struct rp_err *err)
{
    char text[512];

    row->index = (int64_t)i;
    row->elements = (int64_t)t->n;
    row->dtype = rp_elem_name(t->elem);
    row->nshape = t->rank;
    row->shape = RP_ARENA_NEW(arena, int64_t, t->rank + 1);
    row->max_abs = row->max_rel = row->moved = (double)NAN;
    row->wrong = RP_ABSENT_I64;
    row->ok = true;
    rp_tensor_shape_text(t, text, sizeof text);
    row->shown = rp_arena_strdup(arena, text + strcspn(text, "["));
    RP_TRY(rp_err_need(row->shape && row->shown, err, "describing outputs"));
    memcpy(row->shape, t->dims, t->rank * sizeof *t->dims);
    return RP_OK;
}

enum rp_code rp_replay_warn(struct rp_replay *root, struct rp_arena *arena, const char *text,
                            struct rp_err *err)
{
    const char **list = RP_ARENA_NEW(arena, const char *, root->nwarnings + 1);

    RP_TRY(rp_err_need(list && text, err, "judging outputs"));
    if (root->nwarnings)
        memcpy(list, root->warnings, root->nwarnings * sizeof *list);
    list[root->nwarnings++] = text;
    root->warnings = list;
    return RP_OK;
}

void rp_replay_judge(struct rp_arena *arena, const struct rp_tensor *got,
                     const struct rp_tensor *want, const struct rp_tolerance *tolerance,
                     struct rp_replay_output *row)
{
    struct rp_comparison c;

    rp_compare(got, want, tolerance, &c);
    row->nworst = 0;
    row->ok = c.ok;
    row->max_abs = c.max_abs;
    row->max_rel = c.max_rel;
    row->wrong = (int64_t)c.wrong;
    row->reason = c.reason;
    row->worst = RP_ARENA_NEW(arena, struct rp_replay_worst, c.nworst + 1);
    for (size_t i = 0; row->worst && i < c.nworst; i++, row->nworst++) {
        row->worst[i].index = place_text(arena, got, c.worst[i].at);
        row->worst[i].got = c.worst[i].got;
        row->worst[i].want = c.worst[i].want;
    }
}

enum rp_code rp_replay_tolerance(const struct rp_settings *settings, struct rp_tolerance *t,
                                 struct rp_err *err)
{
    const char *names[2] = {"atol", "rtol"};
    double values[2] = {-1, -1};

    for (size_t i = 0; i < 2; i++) {
        const char *text = rp_settings_text(settings, names[i]);
        char *end;

        if (!text)
            continue;
        values[i] = strtod(text, &end);
        if (*end || end == text || !(values[i] >= 0))
            return rp_err_set(err, RP_USAGE, "--%s takes a number such as 1e-3, not '%s'", names[i],
                              text);
    }
    t->absolute = values[0];
    t->relative = values[1];
    t->ulp = rp_settings_has(settings, "ulp") ? rp_settings_int(settings, "ulp") : -1;
    t->nan_differs = rp_settings_flag(settings, "nan-differs");
    return RP_OK;
}

/* ---- checking ---- */

/* XLA for NVIDIA's GPUs multiplies f32 as TF32 unless the program asks for more. */
static bool on_gpu(const struct rp_executable *exe)
{
    return exe && (strstr(exe->device, "(cuda)") || strstr(exe->device, "(gpu)"));
}

/* Whether the user says that nothing was multiplied in TF32. */
static bool is_f32(const struct rp_settings *settings)
{
    const char *products = rp_settings_text(settings, "products");

    return products && !strcmp(products, "f32");
}

/* other: the engine that gave `want`, or NULL if that comes from a file. */
static enum rp_code compare_all(const struct rp_session *s, const struct rp_settings *settings,
                                const struct rp_session_run *run, const struct rp_executable *other,
                                struct rp_tensor *const *want, struct rp_result *result,
                                struct rp_err *err)
{
    struct rp_replay *root = result->root;
    const struct rp_signature *sig = &s->signature;
    struct rp_tolerance tolerance = {.tf32 = false};
    const uint8_t *through = NULL;
    bool is_own;   /* none of the bounds is the user's */
    bool any_tf32; /* one side may have used TF32 */

    RP_TRY(rp_replay_tolerance(settings, &tolerance, err));
    is_own = tolerance.absolute < 0 && tolerance.relative < 0 && tolerance.ulp < 0;
    if (s->program.program && !s->graph)
        RP_TRY(rp_precision_find(s->program.program, sig, &result->arena, &through, err));
    tolerance.tf32 = on_gpu(run->exe) || on_gpu(other);
    any_tf32 = tolerance.tf32 || (!other && !is_f32(settings));
    if (tolerance.tf32)
        root->checked = rp_arena_printf(
            &result->arena, "%s, f32 as TF32 (GPU products use ten bits of the mantissa)",
            root->checked);
    for (size_t i = 0; i < run->noutputs; i++) {
        tolerance.through = through && sig->nout ? through[i % sig->nout] : RP_ELEM_INVALID;
        rp_replay_judge(&result->arena, run->outputs[i], want[i], &tolerance, &root->outputs[i]);
    }
    if (is_own && s->program.program && !s->graph && sig->nout && s->arguments) {
        if (!tolerance.tf32)
            RP_TRY(rp_replay_tighten(s, run, want, through, any_tf32, result, err));
        RP_TRY(rp_replay_tighten_narrow(s, run, want, through, any_tf32, result, err));
    }
    for (size_t i = 0; i < run->noutputs; i++)
        root->ok &= root->outputs[i].ok;
    if (is_own)
        RP_TRY(rp_replay_excuse(s, run, any_tf32, result, err));
    result->answer = root->ok ? 0 : RP_ANSWER_NO;
    return RP_OK;
}

static enum rp_code check_engine(const struct rp_session *s, const struct rp_settings *settings,
                                 const char *name, const struct rp_session_run *run,
                                 struct rp_result *result, struct rp_err *err)
{
    RP_SCOPED(rp_session_run_release) struct rp_session_run other = {.options = run->options};
    struct rp_replay *root = result->root;

    RP_TRY(rp_engine_find(name, &other.engine, &other.where, err));
    root->checked = rp_arena_printf(&result->arena, "engine %s", name);
    other.options.profile = false;

    RP_TRY(rp_session_execute(s, &other, err));
    if (other.noutputs != run->noutputs)
        return rp_err_set(err, RP_FORMAT, "engine '%s' gives %zu outputs instead of %zu", name,
                          other.noutputs, run->noutputs);
    return compare_all(s, settings, run, other.exe, other.outputs, result, err);
}

static enum rp_code check_expected(const struct rp_session *s, const struct rp_settings *settings,
                                   const struct rp_session_run *run, struct rp_result *result,
                                   struct rp_err *err)
{
    struct rp_tensor **want = calloc(run->noutputs + 1, sizeof(struct rp_tensor *));
    struct rp_replay *root = result->root;

    RP_TRY(rp_err_need(want, err, "comparing"));
    root->checked = rp_settings_has(settings, "expect")
                        ? rp_arena_strdup(&result->arena, rp_settings_text(settings, "expect"))
                    : s->bundle ? "the bundle"
                                : "the recorded result";
    enum rp_code code = rp_session_expected(s, want, run->noutputs, err);
    if (code == RP_OK)
        code = compare_all(s, settings, run, NULL, want, result, err);
    for (size_t i = 0; i < run->noutputs; i++)
        rp_tensor_drop(want[i]);
    free(want);
    return code;
}

enum rp_code rp_replay_check(const struct rp_session *s, const struct rp_settings *settings,
                             const struct rp_session_run *run, struct rp_result *result,
                             struct rp_err *err)
{
    const char *how = rp_settings_text(settings, "check");

    if (how && !strncmp(how, "engine:", 7))
        return check_engine(s, settings, how + 7, run, result, err);
    if (how ? !strcmp(how, "expected") : s->expected.list.n || s->snapshot.results.n)
        return check_expected(s, settings, run, result, err);
    return RP_OK;
}

enum rp_code rp_replay_check_settings(const struct rp_settings *settings, struct rp_err *err)
{
    const char *how = rp_settings_text(settings, "check"), *where;
    const struct rp_engine *engine;
    struct rp_tolerance tolerance;

    RP_TRY(rp_replay_tolerance(settings, &tolerance, err));
    if (how && !strncmp(how, "engine:", 7))
        return rp_engine_find(how + 7, &engine, &where, err);
    if (how && strcmp(how, "expected") != 0 && strcmp(how, "none") != 0)
        return rp_err_set(err, RP_USAGE, "--check takes 'expected', 'none' or 'engine:NAME'");
    return RP_OK;
}
