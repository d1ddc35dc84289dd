/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes files of cost models: text with one item per line, whose fields are separated by
 * tabs (docs/formats/model.md). Anything in a file may be wrong, so it is checked when it is read,
 * and predictions need no checks.
 */
#include "cost/learn/learned.h"

#include "base/order.h"

#include "base/decides.h"
#include "base/scope.h"
#include "io/embedded.h"
#include "io/escaped.h"
#include "io/lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC   "reprise-model"
#define METHOD  "builtin" /* the method of all fits; earlier versions could train trees, too */
#define VERSION 1
RP_FACT(VERSION, "version", "of the file (docs/formats/model.md)");
#define MOST_BYTES ((size_t)64 << 20)
#define MOST_ROWS  200000
RP_LIMIT(MOST_ROWS, "rows", "a model with more is refused");
#define MOST_FITS 20000
RP_LIMIT(MOST_FITS, "fits", "a model with more is refused");
#define MOST_PIECES 4096
RP_LIMIT(MOST_PIECES, "pieces of a curve", "a model with more is refused");
#define MOST_SHOWN 20
RP_LIMIT(MOST_SHOWN, "bytes", "of a version that a message shows");
#define MOST_FIELDS 16
RP_LIMIT(MOST_FIELDS, "fields of a line", "a line with more is malformed");
#define MOST_COUNT 1e15
RP_LIMIT(MOST_COUNT, "times that a row was measured", "more is malformed");
#define MOST_BASE_S 1e6
RP_LIMIT(MOST_BASE_S, "s", "an overhead above is malformed");
#define MOST_FACTOR 1e12
RP_LIMIT(MOST_FACTOR, "times", "a factor of a base above is malformed");
#define MOST_LOG 200
RP_LIMIT(MOST_LOG, "of a logarithm of seconds", "more is malformed");
#define MOST_GAPS 1000
RP_LIMIT(MOST_GAPS, "gaps between formats", "a model with more is refused");
#define MOST_SIZE 1e9
RP_LIMIT(MOST_SIZE, "of a feature", "a place of a piece above is malformed");

/* ------------------------------------------------------------------ writing */

/* Writes FLOPs and bytes as texts: "-" if they follow from the operator and its shape. */
static void work_texts(const struct rp_sample *s, char flops[32], char bytes[32])
{
    struct rp_sample plain = *s;
    char text[2][32] = {"", ""};

    plain.flops = plain.bytes = NAN;
    snprintf(flops, 32, "%.10g", s->flops);
    snprintf(bytes, 32, "%.10g", s->bytes);
    if (rp_sample_complete(&plain, NULL) != RP_OK)
        return;
    snprintf(text[0], sizeof text[0], "%.10g", plain.flops);
    snprintf(text[1], sizeof text[1], "%.10g", plain.bytes);
    if (!strcmp(text[0], flops))
        memcpy(flops, "-", 2);
    if (!strcmp(text[1], bytes))
        memcpy(bytes, "-", 2);
}

static void write_rows(const struct rp_learned *m, struct rp_out *out)
{
    char shape[256], flops[32], bytes[32];

    for (size_t i = 0; i < m->samples.rows.n; i++) {
        const struct rp_sample *s = &m->samples.rows.at[i];

        rp_out_text(out, "row\t");
        rp_out_escaped(out, RP_IN_LINE, s->device);
        rp_out_char(out, '\t');
        rp_out_escaped(out, RP_IN_LINE, s->op);
        work_texts(s, flops, bytes);
        rp_out_printf(out, "\t%s\t%s\t%s\t%s\t%.6g\t%.0f\n", rp_number_names[s->type],
                      rp_sample_shape_text(s, shape, sizeof shape), flops, bytes, s->ns, s->count);
    }
}

static void write_fit(const struct rp_fit *fit, struct rp_out *out)
{
    rp_out_text(out, "fit\t");
    rp_out_escaped(out, RP_IN_LINE, fit->device);
    rp_out_char(out, '\t');
    rp_out_escaped(out, RP_IN_LINE, fit->op);
    rp_out_printf(out, "\t%s\t" METHOD "\t%u\t%u\n", rp_op_kind_names[fit->kind], fit->count,
                  fit->types);
    rp_out_printf(out, "error\t%.6g\t%.6g", fit->error_low, fit->error_high);
    if (!isnan(fit->median))
        rp_out_printf(out, "\t%.4g\t%.4g", fit->median, fit->p90);
    rp_out_char(out, '\n');
    for (size_t i = 0; i < fit->curves.n; i++) {
        const struct rp_curve *c = &fit->curves.at[i];

        rp_out_printf(out, "curve\t%s\t%d\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\n",
                      rp_number_names[c->type], c->aligned, c->base[0], c->base[1], c->base[2],
                      c->base[3], c->low, c->high, c->bias, c->slope);
        for (size_t k = 0; k < c->pieces.n; k++)
            rp_out_printf(out, "piece\t%d\t%.9g\t%.9g\t%.6g\n", c->pieces.at[k].feature,
                          (double)c->pieces.at[k].low, (double)c->pieces.at[k].high,
                          (double)c->pieces.at[k].gain);
    }
}

void rp_learned_write(const struct rp_learned *m, struct rp_out *out)
{
    rp_out_printf(out, MAGIC "\t%d\n", VERSION);
    rp_out_text(out, "method\t" METHOD "\n");
    for (size_t i = 0; i < m->samples.sources.n; i++) {
        rp_out_text(out, "source\t");
        rp_out_escaped(out, RP_IN_LINE, m->samples.sources.at[i]);
        rp_out_char(out, '\n');
    }
    rp_out_text(out, "# row: device, operator, format, shape, FLOPs, bytes, ns, measurements\n");
    write_rows(m, out);
    rp_out_text(out, "# fit: device, operator, kind, method, rows, formats\n");
    for (size_t i = 0; i < m->fits.n; i++)
        write_fit(&m->fits.at[i], out);
    for (size_t i = 0; i < m->transfers.n; i++) {
        const struct rp_format_gap *gap = &m->transfers.at[i];

        rp_out_printf(out, "gap\t%s\t%s\t%s\t%.17g\t%.17g\n", rp_op_kind_names[gap->kind],
                      rp_number_names[gap->from], rp_number_names[gap->to], gap->quick, gap->slow);
    }
    rp_out_text(out, "end\n");
}

/* ------------------------------------------------------------------ reading */

struct model_reader {
    struct rp_learned *out;
    struct rp_fit *fit; /* the last */
    bool begun, ended;
};

struct field {
    const char *text;
    size_t n;
};

static bool field_is(const struct field *f, const char *word)
{
    return f->n == strlen(word) && !memcmp(f->text, word, f->n);
}

static bool field_number(const struct field *f, double low, double high, double *out)
{
    char buf[64], *end;

    if (!f->n || f->n >= sizeof buf)
        return false;
    memcpy(buf, f->text, f->n);
    buf[f->n] = '\0';
    *out = strtod(buf, &end);
    return !*end && *out >= low && *out <= high;
}

static int field_word(const struct field *f, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (field_is(f, words[i]))
            return i;
    return -1;
}

static enum rp_code malformed(const char *what, struct rp_err *err)
{
    return rp_err_set(err, RP_FORMAT, "malformed %s", what);
}

/* Reads FLOPs or bytes; "-" means that rp_sample_complete() knows them. */
static bool field_work(const struct field *f, double *out)
{
    *out = NAN;
    return field_is(f, "-") || field_number(f, 0, RP_SAMPLE_MOST_WORK, out);
}

static enum rp_code read_row(struct model_reader *r, const struct field *f, size_t n,
                             struct rp_err *err)
{
    struct rp_arena *arena = &r->out->samples.arena;
    struct rp_sample s = {0};
    int type = n == 9 ? field_word(&f[3], rp_number_names, RP_NUMBERS) : -1;

    if (type <= 0 || !f[1].n || !f[2].n || r->fit ||
        rp_sample_shape_parse(f[4].text, f[4].n, &s, NULL) != RP_OK ||
        !field_work(&f[5], &s.flops) || !field_work(&f[6], &s.bytes) ||
        !field_number(&f[7], 1e-3, RP_SAMPLE_MOST_NS, &s.ns) ||
        !field_number(&f[8], 1, MOST_COUNT, &s.count) || r->out->samples.rows.n >= MOST_ROWS)
        return malformed("row", err);
    s.type = (uint8_t)type;
    s.device = rp_arena_copy(arena, f[1].text, f[1].n);
    s.op = rp_arena_copy(arena, f[2].text, f[2].n);
    RP_TRY(rp_arena_check(arena, "reading a cost model", err));
    if (rp_sample_complete(&s, NULL) != RP_OK)
        return malformed("row", err);
    return rp_vec_push(&r->out->samples.rows, s, err);
}

static enum rp_code check_method(const struct field *method, struct rp_err *err)
{
    if (field_is(method, "trees"))
        return rp_err_set(err, RP_UNSUPPORTED,
                          "a cost model with trees, of an earlier version: train it again with "
                          "'reprise model train'");
    return field_is(method, METHOD) ? RP_OK : malformed("method", err);
}

static enum rp_code read_fit(struct model_reader *r, const struct field *f, size_t n,
                             struct rp_err *err)
{
    struct rp_arena *arena = &r->out->arena;
    struct rp_fit fit = {0};
    int kind = n == 7 ? field_word(&f[3], rp_op_kind_names, RP_OP_KINDS) : -1;
    double count, types;

    if (kind < 0 || !f[1].n || !f[2].n || !field_number(&f[5], 0, 1e9, &count) ||
        !field_number(&f[6], 0, (1u << RP_NUMBERS) - 1, &types) || r->out->fits.n >= MOST_FITS)
        return malformed("fit", err);
    RP_TRY(check_method(&f[4], err));
    fit.device = rp_arena_copy(arena, f[1].text, f[1].n);
    fit.op = rp_arena_copy(arena, f[2].text, f[2].n);
    RP_TRY(rp_arena_check(arena, "reading a cost model", err));
    fit.kind = (uint8_t)kind;
    fit.count = (uint32_t)count;
    fit.types = (uint32_t)types;
    fit.median = fit.p90 = NAN;
    RP_TRY(rp_vec_push(&r->out->fits, fit, err));
    r->fit = &r->out->fits.at[r->out->fits.n - 1];
    return RP_OK;
}

static enum rp_code read_error(struct rp_fit *fit, const struct field *f, size_t n,
                               struct rp_err *err)
{
    return (n == 3 || n == 5) && field_number(&f[1], -50, 0, &fit->error_low) &&
                   field_number(&f[2], 0, 50, &fit->error_high) &&
                   (n == 3 || (field_number(&f[3], 0, 1e9, &fit->median) &&
                               field_number(&f[4], 0, 1e9, &fit->p90)))
               ? RP_OK
               : malformed("error", err);
}

static enum rp_code read_curve(struct rp_fit *fit, const struct field *f, size_t n,
                               struct rp_err *err)
{
    struct rp_curve curve = {0};
    int type = n == 11 ? field_word(&f[1], rp_number_names, RP_NUMBERS) : -1;
    double aligned;

    if (type < 0 || !field_number(&f[2], 0, 2, &aligned) ||
        !field_number(&f[3], 0, MOST_BASE_S, &curve.base[0]) ||
        !field_number(&f[4], 0, MOST_FACTOR, &curve.base[1]) ||
        !field_number(&f[5], 0, MOST_FACTOR, &curve.base[2]) ||
        !field_number(&f[6], 0, MOST_FACTOR, &curve.base[3]) ||
        !(curve.base[0] + curve.base[1] + curve.base[2] + curve.base[3] > 0) ||
        !field_number(&f[7], -MOST_LOG, MOST_LOG, &curve.low) ||
        !field_number(&f[8], curve.low, MOST_LOG, &curve.high) ||
        !field_number(&f[9], -1e3, 1e3, &curve.bias) ||
        !field_number(&f[10], 0, 1e3, &curve.slope) || fit->curves.n > (size_t)2 * RP_NUMBERS)
        return malformed("curve", err);
    curve.type = (uint8_t)type;
    curve.aligned = (uint8_t)aligned;
    return rp_vec_push(&fit->curves, curve, err);
}

/* Counts the features of a kind, and those among them that are sizes. */
static void count_features(uint8_t kind, size_t *n, size_t *nsizes)
{
    struct rp_sample s = {.op = "",
                          .device = "A100",
                          .type = RP_NUMBER_FP32,
                          .kind = kind,
                          .ndims = RP_SHAPE_DIMS - 1,
                          .flops = 1,
                          .bytes = 1};
    struct rp_features x;

    for (int i = 0; i < RP_SHAPE_DIMS; i++)
        s.dim[i] = 1;
    rp_features_of(&s, (enum rp_op_kind)kind, &x);
    *n = x.n;
    *nsizes = x.nsizes;
}

static enum rp_code read_piece(struct rp_fit *fit, const struct field *f, size_t n,
                               struct rp_err *err)
{
    double feature, low, high, gain;
    size_t count, nsizes;

    count_features(fit->kind, &count, &nsizes);
    if (n != 5 || !fit->curves.n || !field_number(&f[1], 0, RP_FEATURES_MAX, &feature) ||
        feature != floor(feature) || !field_number(&f[2], -1e3, MOST_SIZE, &low) ||
        !field_number(&f[3], low, MOST_SIZE, &high) || !field_number(&f[4], -1e3, 1e3, &gain) ||
        (feature >= (double)count && feature != RP_FEATURES_MAX) ||
        (gain < 0 && (feature < (double)nsizes || feature == RP_FEATURES_MAX)) ||
        fit->curves.at[fit->curves.n - 1].pieces.n > MOST_PIECES)
        return malformed("piece", err);
    return rp_vec_push(
        &fit->curves.at[fit->curves.n - 1].pieces,
        ((struct rp_curve_piece){(uint8_t)feature, (float)low, (float)high, (float)gain}), err);
}

static enum rp_code read_item(struct model_reader *r, const struct field *f, size_t n,
                              struct rp_err *err)
{
    if (field_is(f, "row"))
        return read_row(r, f, n, err);
    if (field_is(f, "fit"))
        return read_fit(r, f, n, err);
    if (field_is(f, "source") && n == 2)
        return rp_vec_push(&r->out->samples.sources,
                           rp_arena_copy(&r->out->arena, f[1].text, f[1].n), err);
    if (field_is(f, "method") && n == 2)
        return check_method(&f[1], err);
    if (field_is(f, "end")) {
        r->ended = true;
        return RP_OK;
    }
    if (!r->fit)
        return malformed("line", err);
    if (field_is(f, "error"))
        return read_error(r->fit, f, n, err);
    if (field_is(f, "curve"))
        return read_curve(r->fit, f, n, err);
    if (field_is(f, "piece"))
        return read_piece(r->fit, f, n, err);
    if (field_is(f, "gap")) {
        struct rp_learned *m = r->out;
        int kind = n == 6 ? field_word(&f[1], rp_op_kind_names, RP_OP_KINDS) : -1;
        int from = n == 6 ? field_word(&f[2], rp_number_names, RP_NUMBERS) : -1;
        int to = n == 6 ? field_word(&f[3], rp_number_names, RP_NUMBERS) : -1;
        double quick, slow;

        if (kind < 0 || from <= 0 || to <= 0 || !field_number(&f[4], -MOST_LOG, MOST_LOG, &quick) ||
            !field_number(&f[5], -MOST_LOG, MOST_LOG, &slow) || m->transfers.n >= MOST_GAPS)
            return malformed("gap", err);
        return rp_vec_push(
            &m->transfers,
            ((struct rp_format_gap){(uint8_t)kind, (uint8_t)from, (uint8_t)to, quick, slow}), err);
    }
    return malformed("line", err);
}

static enum rp_code read_line(void *user, const char *path, size_t number, const char *line,
                              size_t n, struct rp_err *err)
{
    struct model_reader *r = user;
    struct field f[MOST_FIELDS];
    size_t count = 0, i = 0;
    double version;

    if (!n || line[0] == '#')
        return RP_OK;
    while (count < MOST_FIELDS) {
        size_t begin = i;

        while (i < n && line[i] != '\t')
            i++;
        f[count++] = (struct field){line + begin, i - begin};
        if (i++ >= n)
            break;
    }
    if (!r->begun) {
        r->begun = true;
        if (count != 2 || !field_is(&f[0], MAGIC))
            return rp_err_set(err, RP_FORMAT,
                              "'%s' is not a cost model: make one with "
                              "'reprise model train'",
                              path);
        if (!field_number(&f[1], VERSION, VERSION, &version))
            return rp_err_set(err, RP_UNSUPPORTED,
                              "'%s': a cost model of version %.*s, this reprise reads version %d",
                              path, (int)(f[1].n < MOST_SHOWN ? f[1].n : MOST_SHOWN), f[1].text,
                              VERSION);
        return RP_OK;
    }
    if (r->ended)
        return rp_err_set(err, RP_FORMAT, "'%s' line %zu: text after the end", path, number);
    enum rp_code code = read_item(r, f, count, err);
    return code == RP_OK ? RP_OK : rp_err_prefix(err, code, "'%s' line %zu", path, number);
}

/* Checks that each fit can predict and has rows of its own. */
static enum rp_code check_fits(struct rp_learned *m, const char *path, struct rp_err *err)
{
    RP_FREED bool *taken = calloc(m->samples.rows.n + 1, sizeof *taken);

    RP_TRY(rp_err_need(taken, err, "reading a cost model"));
    for (size_t i = 0; i < m->fits.n; i++) {
        struct rp_fit *fit = &m->fits.at[i];

        /* Find the rows of a fit, which are sorted by device and operator; for fused chains, those
           of all names. */
        const struct rp_sample *rows = m->samples.rows.at;
        bool fused = fit->kind == RP_OP_FUSED;
        size_t k, n = m->samples.rows.n;
        int order;
        RP_LOWER_BOUND(k, n,
                       (order = strcmp(rows[k].device, fit->device)) < 0 ||
                           (!order && !fused && strcmp(rows[k].op, fit->op) < 0));
        for (; k < n && !strcmp(rows[k].device, fit->device) &&
               (fused || !strcmp(rows[k].op, fit->op));
             k++)
            if (rows[k].kind == fit->kind) {
                fit->first = fit->end ? fit->first : (uint32_t)k;
                fit->end = (uint32_t)k + 1;
            }

        if (!fit->curves.n)
            return rp_err_set(err, RP_FORMAT, "'%s': the fit of '%s' is incomplete", path, fit->op);
        else if (fit->end && fit->kind != RP_OP_FUSED && taken[fit->first])
            return rp_err_set(err, RP_FORMAT, "'%s': two fits of '%s' for device '%s'", path,
                              fit->op, fit->device);
        else if (fit->end && fit->kind != RP_OP_FUSED)
            taken[fit->first] = true;
    }
    return RP_OK;
}

static enum rp_code finish_reading(struct model_reader *r, const char *path, struct rp_err *err)
{
    if (!r->begun)
        return rp_err_set(err, RP_FORMAT, "'%s' is empty: it is not a cost model", path);
    if (!r->ended)
        return rp_err_set(err, RP_FORMAT, "'%s' is truncated: its last line is missing", path);
    RP_TRY(rp_arena_check(&r->out->arena, "reading a cost model", err));
    RP_TRY(rp_samples_merge(&r->out->samples, err));
    RP_TRY(rp_learned_prepare(r->out, err));
    RP_TRY(check_fits(r->out, path, err));
    return r->out->transfers.n ? RP_OK : rp_learned_compare_formats(r->out, err);
}

enum rp_code rp_learned_parse(struct rp_learned *out, const char *name, const char *text,
                              struct rp_err *err)
{
    struct model_reader r = {.out = out};

    *out = (struct rp_learned){0};
    RP_TRY(rp_lines_parse(name, text, read_line, &r, err));
    return finish_reading(&r, name, err);
}

enum rp_code rp_learned_read(struct rp_learned *out, const char *path, struct rp_err *err)
{
    struct model_reader r = {.out = out};
    struct rp_arena text = RP_ARENA_INIT;

    *out = (struct rp_learned){0};
    enum rp_code code = rp_lines_read(path, MOST_BYTES, &text, read_line, &r, err);
    rp_arena_release(&text);
    RP_TRY(code);
    return finish_reading(&r, path, err);
}

extern const struct rp_embedded rp_cost_h200_model[]; /* h200.model */

enum rp_code rp_learned_builtin(struct rp_learned *out, struct rp_err *err)
{
    RP_FREED char *text = rp_embedded_text(rp_cost_h200_model, err);

    *out = (struct rp_learned){0};
    return text ? rp_learned_parse(out, "built-in", text, err) : RP_NOMEM;
}
