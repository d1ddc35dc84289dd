/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers `model`: cost models are trained on measured operators, tested on rows that were left
 * out, and asked for times.
 */
#include "base/text.h"
#include "model/sources.h"

#include "base/order.h"
#include "cost/learn/learned.h"
#include "dataset/question.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fit_row {
    const char *op, *device, *formats;
    int64_t rows;
    double median_ratio, p90_ratio;
};

struct error_row {
    const char *left_out, *op, *device;
    int64_t rows;
    double median_ratio, p90_ratio, worst_ratio, covered_ratio;
};

struct time_row {
    const char *op, *dtype, *shape, *device, *provenance, *why;
    double flops, bytes;
    int64_t time_ns, low_ns, high_ns, floor_ns, parts_ns, measured_ns;
};

struct model_root {
    const char *action, *model;
    int64_t rows;
    size_t nfits, nerrors, npredictions, nsources, nnotes;
    struct fit_row *fits;
    struct error_row *errors;
    struct time_row *predictions;
    const char **sources, **notes;
};

#define FIT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct fit_row, member, type, unit, title, doc, flags)
static const struct rp_field fit_fields[] = {
    FIT(op, STR, NONE, "operator", "or a family of operators: ~products, ~rows, ~elements", 0),
    FIT(device, STR, NONE, "device", "'*': over several devices", 0),
    FIT(rows, I64, COUNT, "rows", "different shapes and formats that it was fitted to", 0),
    FIT(formats, STR, NONE, "formats", "number formats among them", 0),
    FIT(median_ratio, F64, RATIO, "median error",
        "median ratio for shapes that were left out; null: not known", 0),
    FIT(p90_ratio, F64, RATIO, "p90", "nine of ten are closer", 0),
    RP_FIELD_END};
static const struct rp_type fit_type = {"fit", sizeof(struct fit_row), fit_fields, NULL};

#define ERR(member, type, unit, title, doc, flags) \
    RP_FIELD(struct error_row, member, type, unit, title, doc, flags)
static const struct rp_field error_fields[] = {
    ERR(left_out, STR, NONE, "left out", "shapes, a number format or a device", 0),
    ERR(op, STR, NONE, "operator", "'all operators': all rows", 0),
    ERR(device, STR, NONE, "device", "that the rows were measured on", 0),
    ERR(rows, I64, COUNT, "rows", "predicted and compared", 0),
    ERR(median_ratio, F64, RATIO, "median", "error: |predicted / measured - 1|", 0),
    ERR(p90_ratio, F64, RATIO, "p90", "nine of ten are closer", 0),
    ERR(worst_ratio, F64, RATIO, "worst", "the largest error", 0),
    ERR(covered_ratio, F64, RATIO, "in interval", "rows whose measured time lies in the interval",
        0),
    RP_FIELD_END};
static const struct rp_type error_type = {"error", sizeof(struct error_row), error_fields, NULL};

#define TIME(member, type, unit, title, doc, flags) \
    RP_FIELD(struct time_row, member, type, unit, title, doc, flags)
static const struct rp_field time_fields[] = {
    TIME(op, STR, NONE, "operator", "the operator as given", RP_SHORTEN),
    TIME(dtype, STR, NONE, "format", "number format", 0),
    TIME(shape, STR, NONE, "shape", "the shape as given", 0),
    TIME(device, STR, NONE, "device", "the device's name in the table of devices", 0),
    TIME(time_ns, I64, NS, "time", "predicted", RP_NULLABLE),
    TIME(low_ns, I64, NS, "from", "lower end of the interval", RP_NULLABLE),
    TIME(high_ns, I64, NS, "to", "upper end of the interval", RP_NULLABLE),
    TIME(provenance, STR, NONE, "provenance", "measured, fitted or assumed", 0),
    TIME(why, STR, NONE, "because", "what it rests on", RP_WIDE),
    TIME(flops, F64, FLOP, NULL, "floating point operations", 0),
    TIME(bytes, F64, BYTES, NULL, "read and written at least", 0),
    TIME(floor_ns, I64, NS, "at the peaks", "no kernel is faster", RP_NULLABLE),
    TIME(parts_ns, I64, NS, "one by one", "for a chain: time of its operators as separate kernels",
         RP_NULLABLE),
    TIME(measured_ns, I64, NS, "measured", "where the row has a time", RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type time_type = {"prediction", sizeof(struct time_row), time_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct model_root, action, STR, NONE, NULL, "train, test or predict", 0),
    RP_FIELD(struct model_root, model, STR, NONE, "model", "file, or 'built-in'", 0),
    RP_FIELD(struct model_root, rows, I64, COUNT, "rows", "measured shapes that it knows", 0),
    RP_FIELD_LIST(struct model_root, sources, &rp_type_string, "trained on", "as given", 0),
    RP_FIELD_LIST(struct model_root, fits, &fit_type, "fits", "what was learned", 0),
    RP_FIELD_LIST(struct model_root, errors, &error_type, "errors", "of what was left out", 0),
    RP_FIELD_LIST(struct model_root, predictions, &time_type, "predictions", "in the order given",
                  0),
    RP_FIELD_LIST(struct model_root, notes, &rp_type_string, "notes", "how it was done", 0),
    RP_FIELD_END};
static const struct rp_type root_type = {"model", sizeof(struct model_root), root_fields,
                                         "predictions"};

struct model_ctx {
    struct rp_ctx *rp;
    const struct rp_settings *settings;
    struct rp_arena *arena;
    struct model_root *root;
    struct rp_samples samples;
    struct rp_learned model;
    const char *device;
    RP_VEC(struct error_row) errors;
    RP_VEC(struct time_row) times;
};

/* ------------------------------------------------------------------ options and inputs */

static const char *device_list(struct rp_arena *arena)
{
    size_t i, n;
    const struct rp_device_peaks *devices = rp_devices(&n);
    const char *list = "";

    for (i = 0; i < n; i++)
        list = rp_arena_textf(arena, "%s%s%s", list, i ? ", " : "", devices[i].name);
    return list;
}

static enum rp_code find_device(struct model_ctx *c, struct rp_err *err)
{
    const char *text = rp_settings_text(c->settings, "device");
    const struct rp_device_peaks *d = text ? rp_device_by_name(text) : NULL;

    if (text && !d)
        d = rp_device_recognise(text, 0);
    if (text && !d)
        return rp_err_set(err, RP_USAGE, "--device '%s': unknown device; known devices: %s", text,
                          device_list(c->arena));
    c->device = d ? d->name : NULL;
    return RP_OK;
}

static enum rp_code read_sources(struct model_ctx *c, struct rp_err *err)
{
    const char *path;
    size_t i;

    for (i = 1; (path = rp_settings_nth(c->settings, "source", i)) != NULL; i++)
        RP_TRY(rp_model_read_source(c->rp, path, c->device, &c->samples, err));
    if (i == 1)
        return rp_err_set(err, RP_USAGE,
                          "'model %s' needs tables (.csv), traces or folders of them",
                          rp_settings_nth(c->settings, "source", 0));
    if (!c->samples.rows.n)
        return rp_err_set(err, RP_UNSUPPORTED, "nothing that was measured in the sources");
    return rp_samples_merge(&c->samples, err);
}

static enum rp_code read_model(struct model_ctx *c, struct rp_err *err)
{
    const char *path = rp_settings_text(c->settings, "model");

    c->root->model = path ? rp_arena_text(c->arena, path) : "built-in";
    return path ? rp_learned_read(&c->model, path, err) : rp_learned_builtin(&c->model, err);
}

/* ------------------------------------------------------------------ train */

static const char *format_list(struct rp_arena *arena, uint32_t types)
{
    const char *text = "";

    for (int i = 1; i < RP_NUMBERS; i++)
        if (types & 1u << i)
            text = rp_arena_textf(arena, "%s%s%s", text, *text ? " " : "", rp_number_names[i]);
    return text;
}

static void fill_model(struct model_ctx *c)
{
    const struct rp_learned *m = &c->model;
    struct model_root *root = c->root;

    root->rows = (int64_t)m->samples.rows.n;
    root->sources = RP_ARENA_NEW(c->arena, const char *, m->samples.sources.n + 1);
    for (size_t i = 0; root->sources && i < m->samples.sources.n; i++)
        root->sources[root->nsources++] = rp_arena_text(c->arena, m->samples.sources.at[i]);
}

static void fill_fits(struct model_ctx *c)
{
    const struct rp_learned *m = &c->model;
    struct fit_row *rows = RP_ARENA_NEW(c->arena, struct fit_row, m->fits.n + 1);

    for (size_t i = 0; rows && i < m->fits.n; i++)
        rows[i] = (struct fit_row){.op = rp_arena_text(c->arena, m->fits.at[i].op),
                                   .device = rp_arena_text(c->arena, m->fits.at[i].device),
                                   .formats = format_list(c->arena, m->fits.at[i].types),
                                   .rows = m->fits.at[i].count,
                                   .median_ratio = m->fits.at[i].median,
                                   .p90_ratio = m->fits.at[i].p90};
    c->root->fits = rows;
    c->root->nfits = rows ? m->fits.n : 0;
}

/* ------------------------------------------------------------------ test */

/* The outcome for one row that was left out. */
struct outcome {
    uint32_t row;
    double error; /* log(measured / predicted) */
    bool covered;
};

struct outcomes {
    RP_VEC(struct outcome) list;
};

RP_ORDER(compare_errors, double, RP_COMPARE(*a, *b))

/* Adds the outcomes of an operator on a device as a row of the answer; NULL for all. */
static enum rp_code add_error(struct model_ctx *c, const struct outcomes *o, const char *left_out,
                              const struct rp_sample *like, struct rp_err *err)
{
    double *errors = malloc((o->list.n + 1) * sizeof *errors);
    struct error_row row = {
        .left_out = left_out,
        .op = like ? like->kind == RP_OP_FUSED ? "fused" : rp_arena_text(c->arena, like->op)
                   : "all operators",
        .device = like ? rp_arena_text(c->arena, like->device) : NULL};
    size_t i, n = 0, covered = 0;

    RP_TRY(rp_err_need(errors, err, "testing a cost model"));
    for (i = 0; i < o->list.n; i++) {
        const struct rp_sample *s = &c->samples.rows.at[o->list.at[i].row];
        bool same =
            !like ||
            (!strcmp(s->device, like->device) &&
             (like->kind == RP_OP_FUSED ? s->kind == RP_OP_FUSED : !strcmp(s->op, like->op)));

        if (same) {
            errors[n++] = fabs(exp(-o->list.at[i].error) - 1);
            covered += o->list.at[i].covered;
        }
    }
    if (n) {
        qsort(errors, n, sizeof *errors, compare_errors);
        row.rows = (int64_t)n;
        row.median_ratio = rp_quantile(errors, n, 0.5);
        row.p90_ratio = rp_quantile(errors, n, 0.9);
        row.worst_ratio = errors[n - 1];
        row.covered_ratio = (double)covered / (double)n;
    }
    free(errors);
    return n ? rp_vec_push(&c->errors, row, err) : RP_OK;
}

static enum rp_code add_errors(struct model_ctx *c, const struct outcomes *o, const char *left_out,
                               struct rp_err *err)
{
    const struct rp_sample *rows = c->samples.rows.at;
    bool fused = false;

    for (size_t i = 0; i < c->samples.rows.n; i++) {
        bool again =
            i && !strcmp(rows[i].op, rows[i - 1].op) && !strcmp(rows[i].device, rows[i - 1].device);

        if (again || (rows[i].kind == RP_OP_FUSED && fused))
            continue;
        fused = fused || rows[i].kind == RP_OP_FUSED;
        RP_TRY(add_error(c, o, left_out, &rows[i], err));
    }
    return add_error(c, o, left_out, NULL, err);
}

/* Learns without the rows that are left out, and predicts them. */
static enum rp_code leave_out(struct model_ctx *c, bool calibrated, const uint8_t *left_out,
                              struct outcomes *o, struct rp_err *err)
{
    RP_SCOPED(rp_learned_release) struct rp_learned model = {0};
    struct rp_learned_time t;

    RP_TRY(rp_learn(&model, &c->samples, left_out, calibrated, err));
    for (size_t i = 0; i < c->samples.rows.n; i++) {
        const struct rp_sample *s = &c->samples.rows.at[i];

        if (left_out[i] && rp_learned_predict(&model, s, &t))
            RP_TRY(rp_vec_push(&o->list,
                               ((struct outcome){(uint32_t)i, log(s->ns / t.ns),
                                                 s->ns >= t.low_ns && s->ns <= t.high_ns}),
                               err));
    }
    return RP_OK;
}

static enum rp_code test_shapes(struct model_ctx *c, uint8_t *left_out, struct rp_err *err)
{
    struct outcomes o = {0};
    enum rp_code code = RP_OK;

    for (uint32_t fold = 0; code == RP_OK && fold < RP_LEARN_FOLDS; fold++) {
        for (size_t i = 0; i < c->samples.rows.n; i++)
            left_out[i] = rp_learn_fold(&c->samples.rows.at[i]) == fold;
        code = leave_out(c, true, left_out, &o, err);
    }
    if (code == RP_OK)
        code = add_errors(c, &o, "shapes", err);
    rp_vec_release(&o.list);
    return code;
}

/* Tests each operator without one of its formats at a time; one with a single format cannot be
   tested like this. */
static enum rp_code test_format(struct model_ctx *c, uint8_t type, uint8_t *left_out,
                                struct outcomes *all, struct rp_err *err)
{
    const struct rp_sample *rows = c->samples.rows.at;
    struct outcomes o = {0};
    enum rp_code code = RP_OK;
    size_t i, end, k, n = c->samples.rows.n;

    for (i = 0; code == RP_OK && i < n; i = end) {
        bool has = false, others = false;

        for (end = i; end < n && !strcmp(rows[end].op, rows[i].op) &&
                      !strcmp(rows[end].device, rows[i].device);
             end++) {
            has = has || rows[end].type == type;
            others = others || rows[end].type != type;
        }
        for (k = 0; k < n; k++)
            left_out[k] = k >= i && k < end && rows[k].type == type;
        if (has && others)
            code = leave_out(c, false, left_out, &o, err);
    }
    if (code == RP_OK && o.list.n)
        code = add_errors(c, &o, rp_number_names[type], err);
    for (i = 0; code == RP_OK && i < o.list.n; i++)
        code = rp_vec_push(&all->list, o.list.at[i], err);
    rp_vec_release(&o.list);
    return code;
}

static enum rp_code test_devices(struct model_ctx *c, uint8_t *left_out, struct rp_err *err)
{
    const struct rp_sample *rows = c->samples.rows.at;
    size_t i, k, n = c->samples.rows.n;

    if (!strcmp(rows[0].device, rows[n - 1].device)) {
        RP_NOTE(c->root, c->arena, "one device: no device was left out");
        return RP_OK;
    }
    for (i = 0; i < n; i++) {
        struct outcomes o = {0};

        if (i && !strcmp(rows[i].device, rows[i - 1].device))
            continue;
        for (k = 0; k < n; k++)
            left_out[k] = !strcmp(rows[k].device, rows[i].device);
        enum rp_code code = leave_out(c, false, left_out, &o, err);
        if (code == RP_OK)
            code = add_errors(c, &o, rp_arena_text(c->arena, rows[i].device), err);
        rp_vec_release(&o.list);
        RP_TRY(code);
    }
    return RP_OK;
}

/* Tests a model with a table, without the shapes on which it was trained. */
static enum rp_code test_model(struct model_ctx *c, struct rp_err *err)
{
    struct outcomes o = {0};
    struct rp_learned_time t;
    enum rp_code code = read_model(c, err);
    size_t i, known = 0;

    for (i = 0; code == RP_OK && i < c->samples.rows.n; i++) {
        const struct rp_sample *s = &c->samples.rows.at[i];

        if (!rp_learned_predict(&c->model, s, &t))
            continue;
        if (t.provenance == RP_MEASURED) {
            known++;
            continue;
        }
        code = rp_vec_push(&o.list,
                           ((struct outcome){(uint32_t)i, log(s->ns / t.ns),
                                             s->ns >= t.low_ns && s->ns <= t.high_ns}),
                           err);
    }
    fill_model(c);
    if (code == RP_OK)
        code = add_errors(c, &o, "not in the model", err);
    if (code == RP_OK && known)
        RP_NOTE(c->root, c->arena,
                rp_arena_textf(c->arena, "%zu rows that the model was trained on are not counted",
                               known));
    rp_vec_release(&o.list);
    return code;
}

static enum rp_code run_test(struct model_ctx *c, struct rp_err *err)
{
    struct outcomes formats = {0};

    RP_TRY(read_sources(c, err));
    if (rp_settings_text(c->settings, "model"))
        return test_model(c, err);
    c->root->rows = (int64_t)c->samples.rows.n;
    uint8_t *left_out = calloc(c->samples.rows.n + 1, 1);
    RP_TRY(rp_err_need(left_out, err, "testing a cost model"));
    enum rp_code code = test_shapes(c, left_out, err);
    for (uint8_t type = 1; code == RP_OK && type < RP_NUMBERS; type++)
        code = test_format(c, type, left_out, &formats, err);
    if (code == RP_OK)
        code = add_error(c, &formats, "a format", NULL, err);
    rp_vec_release(&formats.list);
    if (code == RP_OK)
        code = test_devices(c, left_out, err);
    free(left_out);
    RP_TRY(code);
    RP_NOTE(c->root, c->arena,
            "shapes: each fifth of the shapes, by their hash, in all formats, predicted from "
            "the others; a format: an operator in it, predicted from its other formats and "
            "from how other operators differ");
    return RP_OK;
}

/* ------------------------------------------------------------------ predict */

/* Returns the time of the parts of a chain, each as its own kernel; NAN if one is not known. */
static double parts_of(const struct model_ctx *c, const struct rp_sample *chain)
{
    const char *at = chain->op;
    double sum = 0;

    while (*at) {
        size_t n = strcspn(at, "+");
        char name[64];
        struct rp_sample s = *chain;
        struct rp_learned_time t;

        if (!n || n >= sizeof name)
            return NAN;
        memcpy(name, at, n);
        name[n] = '\0';
        s.op = name;
        s.flops = s.bytes = NAN;
        if (rp_sample_complete(&s, NULL) != RP_OK || !rp_learned_predict(&c->model, &s, &t))
            return NAN;
        sum += t.ns;
        at += n + (at[n] == '+');
    }
    return sum;
}

static int64_t whole_ns(double ns)
{
    return ns < 9e18 ? (int64_t)(ns + 0.5) : RP_ABSENT_I64;
}

static enum rp_code predict_row(struct model_ctx *c, const struct rp_sample *s, struct rp_err *err)
{
    struct rp_learned_time t;
    struct rp_features x;
    char shape[256];
    struct time_row row = {.op = rp_arena_text(c->arena, s->op),
                           .dtype = rp_number_names[s->type],
                           .device = rp_arena_text(c->arena, s->device),
                           .flops = s->flops,
                           .bytes = s->bytes,
                           .measured_ns = whole_ns(s->ns)};

    if (!rp_learned_predict(&c->model, s, &t))
        return rp_err_set(err, RP_UNSUPPORTED,
                          "nothing is known about '%s' on '%s', which is not in the table of "
                          "devices: train a model on it",
                          s->op, s->device);
    rp_features_of(s, (enum rp_op_kind)s->kind, &x);
    row.shape = rp_arena_text(c->arena, rp_sample_shape_text(s, shape, sizeof shape));
    row.time_ns = whole_ns(t.ns);
    row.low_ns = whole_ns(t.low_ns);
    row.high_ns = whole_ns(t.high_ns);
    row.floor_ns = whole_ns(x.least_s * 1e9);
    row.parts_ns = s->kind == RP_OP_FUSED ? whole_ns(parts_of(c, s)) : RP_ABSENT_I64;
    row.provenance = rp_provenance_names[t.provenance];
    row.why = t.why;
    return rp_vec_push(&c->times, row, err);
}

/* Returns the device of predictions: the given one, otherwise the only one of the model. */
static const char *predicted_device(const struct model_ctx *c)
{
    const struct rp_samples *s = &c->model.samples;

    if (c->device)
        return c->device;
    return s->rows.n && !strcmp(s->rows.at[0].device, s->rows.at[s->rows.n - 1].device)
               ? s->rows.at[0].device
               : NULL;
}

static enum rp_code given_number(const struct model_ctx *c, const char *option, double *out,
                                 struct rp_err *err)
{
    const char *text = rp_settings_text(c->settings, option);
    char *end;

    *out = NAN;
    if (!text)
        return RP_OK;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0 && *out <= RP_SAMPLE_MOST_WORK
               ? RP_OK
               : rp_err_set(err, RP_USAGE, "--%s '%s': a number such as 2.1e9 is expected", option,
                            text);
}

static enum rp_code read_operator(struct model_ctx *c, const char *op, const char *shape,
                                  struct rp_err *err)
{
    const char *type = rp_settings_text(c->settings, "dtype");
    struct rp_sample s = {.op = op, .device = predicted_device(c), .ns = NAN, .count = 1};

    if (!shape)
        return rp_err_set(err, RP_USAGE,
                          "'model predict %s' needs a shape, as in 'model predict matmul "
                          "4096x1024x1024'",
                          op);
    if (!s.device)
        return rp_err_set(err, RP_USAGE,
                          "the model knows several devices: name one with "
                          "'--device'");
    s.type = type ? (uint8_t)rp_number_of_word(type, strlen(type)) : RP_NUMBER_FP32;
    if (s.type == RP_NUMBER_NONE)
        return rp_err_set(err, RP_USAGE,
                          "--dtype '%s': a number format such as f32, bf16 or f16 "
                          "is expected",
                          type);
    RP_TRY(rp_sample_shape_parse(shape, strlen(shape), &s, err));
    RP_TRY(given_number(c, "flops", &s.flops, err));
    RP_TRY(given_number(c, "bytes", &s.bytes, err));
    RP_TRY(rp_sample_complete(&s, err));
    return rp_vec_push(&c->samples.rows, s, err);
}

/* ------------------------------------------------------------------ the question */

static enum rp_code answer_model(struct model_ctx *c, struct rp_err *err)
{
    const char *action = rp_settings_nth(c->settings, "source", 0);

    RP_TRY(find_device(c, err));
    c->root->action = action ? rp_arena_text(c->arena, action) : NULL;
    if (action && !strcmp(action, "train")) {
        const char *path = rp_settings_text(c->settings, "output");
        struct rp_out *out;

        if (!path)
            return rp_err_set(err, RP_USAGE, "'model train' needs '--output FILE' for the model");
        RP_TRY(read_sources(c, err));
        RP_TRY(rp_learn(&c->model, &c->samples, NULL, true, err));
        if (!c->model.fits.n)
            return rp_err_set(err, RP_UNSUPPORTED,
                              "too few rows: an operator needs at least 4 shapes on a device");
        RP_TRY(rp_out_open(path, &out, err));
        rp_learned_write(&c->model, out);
        RP_TRY(rp_out_close(out, err));
        c->root->model = rp_arena_text(c->arena, path);
        fill_model(c);
        fill_fits(c);
        RP_NOTE(c->root, c->arena,
                "errors are of shapes left out: a fifth of them at a time, in all formats");
        return RP_OK;
    }
    if (action && !strcmp(action, "test"))
        return run_test(c, err);
    if (action && !strcmp(action, "predict")) {
        const char *first = rp_settings_nth(c->settings, "source", 1);
        const char *second = rp_settings_nth(c->settings, "source", 2);

        if (!first)
            return rp_err_set(err, RP_USAGE,
                              "'model predict' needs an operator and a shape, or a table (.csv)");
        RP_TRY(read_model(c, err));
        fill_model(c);
        if (rp_text_ends(first, ".csv"))
            RP_TRY(rp_samples_read_csv(&c->samples, first, predicted_device(c), false, err));
        else
            RP_TRY(read_operator(c, first, second, err));
        for (size_t i = 0; i < c->samples.rows.n; i++)
            RP_TRY(predict_row(c, &c->samples.rows.at[i], err));
        return RP_OK;
    }
    return rp_err_set(err, RP_USAGE, "'model' needs what to do: train, test or predict");
}

/* Gives the vectors to the answer. */
static enum rp_code hand_over(struct model_ctx *c, struct rp_err *err)
{
    struct model_root *root = c->root;

    root->errors = RP_ARENA_NEW(c->arena, struct error_row, c->errors.n + 1);
    root->predictions = RP_ARENA_NEW(c->arena, struct time_row, c->times.n + 1);
    RP_TRY(rp_arena_check(c->arena, "answering", err));
    root->nerrors = c->errors.n;
    root->npredictions = c->times.n;
    if (c->errors.n)
        memcpy(root->errors, c->errors.at, c->errors.n * sizeof *root->errors);
    if (c->times.n)
        memcpy(root->predictions, c->times.at, c->times.n * sizeof *root->predictions);
    return RP_OK;
}

static enum rp_code model_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              const struct rp_settings *settings, struct rp_result *result,
                              struct rp_err *err)
{
    struct model_ctx c = {
        .rp = ctx, .settings = settings, .arena = &result->arena, .root = result->root};

    (void)dataset;
    enum rp_code code = answer_model(&c, err);
    if (code == RP_OK)
        code = hand_over(&c, err);
    rp_learned_release(&c.model);
    rp_samples_release(&c.samples);
    rp_vec_release(&c.errors);
    rp_vec_release(&c.times);
    return code;
}

static const struct rp_option options[] = {
    {"source", 0, RP_OPT_TEXT, "WORD", NULL, "train, test or predict, then what it is about",
     RP_OPT_REPEAT | RP_OPT_WORDS},
    {"output", 'o', RP_OPT_PATH, "FILE", NULL, "train: where the model is written", 0},
    {"model", 'm', RP_OPT_PATH, "FILE", NULL,
     "predict, test: the model to use instead of the built-in one or of one made for the test", 0},
    {"device", 'd', RP_OPT_TEXT, "NAME", NULL,
     "the device of rows that do not name one; the device to predict for", 0},
    {"dtype", 0, RP_OPT_TEXT, "FORMAT", "f32", "predict: number format, as bf16", 0},
    {"flops", 0, RP_OPT_TEXT, "N", NULL,
     "predict: FLOPs of an operator that the table does not know", 0},
    {"bytes", 0, RP_OPT_TEXT, "N", NULL, "predict: bytes that it reads and writes", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_model = {
    .question =
        {.name = "model",
         .group = "predict",
         .summary = "cost models of operators: train, test, predict",
         .details =
             "Learns how long operators take on a device, from tables of measurements or "
             "from traces with shapes; reports its error on data that was left out; and predicts times, each with an interval and what it rests on.",
         .examples =
             "reprise model predict matmul 4096x1024x1024 --dtype bf16\twith the built-in model\n"
             "reprise model train ops.csv --device H200 -o h200.model\tfrom a "
             "table\n"
             "reprise model train runs/ -o all.model\tfrom traces in "
             "runs/<gpu>/<model>/\n"
             "reprise model test ops.csv --device H200\terrors on data that is left out\n",
         .accepts = RP_ACCEPTS_SOURCES,
         .options = options,
         .type = &root_type},
    .run = model_run};
