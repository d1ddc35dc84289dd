/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads tables of measured operators. The first line names the columns, in any order; unknown ones
 * are ignored. Chains of element-wise operators have two times: one by one, and in one kernel.
 */
#include "cost/learn/samples.h"

#include "base/decides.h"
#include "io/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_BYTES   ((size_t)256 << 20)
#define MOST_ROWS    ((size_t)4000000)
#define MOST_COLUMNS 64
RP_LIMIT(MOST_COLUMNS, "columns", "a table with more is refused");

enum csv_column {
    OP,
    CHAIN,
    DEVICE,
    DTYPE,
    SHAPE,
    ELEMENTS,
    FLOPS,
    BYTES,
    NS,
    US,
    MS,
    FUSED_US,
    CSV_COLUMNS
};

struct csv {
    struct rp_samples *out;
    const char *device;
    bool timed;
    int at[CSV_COLUMNS]; /* the position of each column; -1 if it is missing */
    bool has_head;
};

struct csv_cell {
    const char *text;
    size_t n;
};

static const struct {
    const char *name;
    enum csv_column column;
} csv_names[] = {{"op", OP},         {"operator", OP},       {"name", OP},     {"chain", CHAIN},
                 {"device", DEVICE}, {"gpu", DEVICE},        {"dtype", DTYPE}, {"type", DTYPE},
                 {"shape", SHAPE},   {"elements", ELEMENTS}, {"flops", FLOPS}, {"bytes", BYTES},
                 {"time_ns", NS},    {"kernel_ns", NS},      {"time_us", US},  {"kernel_us", US},
                 {"time_ms", MS},    {"fused_us", FUSED_US}};

/* Cells may be in double quotes; quotes inside are not supported, because no column needs them. */
static size_t split_line(const char *line, size_t n, struct csv_cell *cells)
{
    size_t count = 0, i = 0;

    while (count < MOST_COLUMNS) {
        size_t begin = i, end;
        bool quoted = i < n && line[i] == '"';

        if (quoted)
            begin = ++i;
        while (i < n && line[i] != (quoted ? '"' : ','))
            i++;
        end = i;
        if (quoted)
            while (i < n && line[i] != ',')
                i++;
        while (!quoted && begin < end && (line[begin] == ' ' || line[begin] == '\t'))
            begin++;
        while (!quoted && end > begin && strchr(" \t\r", line[end - 1]))
            end--;
        cells[count++] = (struct csv_cell){line + begin, end - begin};
        if (i++ >= n)
            break;
    }
    return count;
}

static bool head_is_whole(const int *at, bool timed)
{
    bool time = at[NS] >= 0 || at[US] >= 0 || at[MS] >= 0;

    if (at[CHAIN] >= 0)
        return at[ELEMENTS] >= 0 && (!timed || at[FUSED_US] >= 0);
    return at[OP] >= 0 && (at[SHAPE] >= 0 || at[ELEMENTS] >= 0) && (!timed || time);
}

static double number_of(const struct csv_cell *c)
{
    char buf[64], *end;

    if (!c->n || c->n >= sizeof buf)
        return NAN;
    memcpy(buf, c->text, c->n);
    buf[c->n] = '\0';
    double value = strtod(buf, &end);
    return *end ? NAN : value;
}

static enum rp_code read_number(const struct csv *csv, const struct csv_cell *cells, size_t n,
                                enum csv_column column, double most, double *out,
                                struct rp_err *err)
{
    int at = csv->at[column];

    if (at < 0 || (size_t)at >= n || !cells[at].n)
        return RP_OK;
    *out = number_of(&cells[at]);
    return *out >= 0 && *out <= most ? RP_OK
                                     : rp_err_set(err, RP_FORMAT, "'%.*s' is not a number in range",
                                                  (int)cells[at].n, cells[at].text);
}

/* Returns the name of its device in devices.def; any other name stands for itself. */
static const char *device_of(struct rp_arena *arena, const char *text)
{
    const struct rp_device_peaks *d = rp_device_by_name(text);

    if (!d)
        d = rp_device_recognise(text, 0);
    return d ? d->name : rp_arena_text(arena, text);
}

static enum rp_code read_row(struct csv *csv, const struct csv_cell *cells, size_t n,
                             struct rp_err *err)
{
    struct rp_arena *arena = &csv->out->arena;
    struct rp_sample s = {.flops = NAN, .bytes = NAN, .ns = NAN, .count = 1};
    bool chain = csv->at[CHAIN] >= 0;
    int op = csv->at[chain ? CHAIN : OP], type = csv->at[DTYPE], device = csv->at[DEVICE];
    int shape = csv->at[SHAPE] >= 0 && !chain ? csv->at[SHAPE] : csv->at[ELEMENTS];
    double us = NAN, ms = NAN;

    if ((size_t)op >= n || (size_t)shape >= n || !cells[op].n)
        return rp_err_set(err, RP_FORMAT, "a row has fewer columns than the first line");
    s.op = rp_arena_copy(arena, cells[op].text, cells[op].n);
    s.device = device >= 0 && (size_t)device < n && cells[device].n
                   ? rp_arena_copy(arena, cells[device].text, cells[device].n)
                   : csv->device;
    RP_TRY(rp_arena_check(arena, "reading a table", err));
    if (!s.device)
        return rp_err_set(err, RP_USAGE,
                          "no column 'device': name the device with '--device', as in H200");
    s.device = device_of(arena, s.device);
    s.type = RP_NUMBER_FP32;
    if (type >= 0 && (size_t)type < n && cells[type].n) {
        s.type = (uint8_t)rp_number_of_word(cells[type].text, cells[type].n);
        if (s.type == RP_NUMBER_NONE)
            return rp_err_set(err, RP_FORMAT, "'%.*s' is not a number format, as f32 or bf16",
                              (int)cells[type].n, cells[type].text);
    }
    RP_TRY(rp_sample_shape_parse(cells[shape].text, cells[shape].n, &s, err));
    RP_TRY(read_number(csv, cells, n, FLOPS, RP_SAMPLE_MOST_WORK, &s.flops, err));
    RP_TRY(read_number(csv, cells, n, BYTES, RP_SAMPLE_MOST_WORK, &s.bytes, err));
    RP_TRY(read_number(csv, cells, n, chain ? FUSED_US : US, RP_SAMPLE_MOST_NS / 1e3, &us, err));
    RP_TRY(read_number(csv, cells, n, MS, RP_SAMPLE_MOST_NS / 1e6, &ms, err));
    RP_TRY(read_number(csv, cells, n, NS, RP_SAMPLE_MOST_NS, &s.ns, err));
    s.ns = !isnan(s.ns) ? s.ns : !isnan(us) ? us * 1e3 : ms * 1e6;
    if (csv->timed && !(s.ns > 0))
        return rp_err_set(err, RP_FORMAT, "a row has no time above 0");
    RP_TRY(rp_sample_complete(&s, err));
    RP_TRY(rp_arena_check(arena, "reading a table", err));
    if (csv->out->rows.n >= MOST_ROWS)
        return rp_err_set(err, RP_FORMAT, "more than %zu rows", MOST_ROWS);
    return rp_vec_push(&csv->out->rows, s, err);
}

static enum rp_code read_line(void *user, const char *path, size_t number, const char *line,
                              size_t n, struct rp_err *err)
{
    struct csv *csv = user;
    struct csv_cell cells[MOST_COLUMNS];

    if (!n || line[0] == '#' || (n == 1 && line[0] == '\r'))
        return RP_OK;
    size_t count = split_line(line, n, cells);
    if (!csv->has_head) {
        csv->has_head = true;
        for (size_t i = 0; i < CSV_COLUMNS; i++)
            csv->at[i] = -1;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < sizeof csv_names / sizeof csv_names[0]; k++)
                if (strlen(csv_names[k].name) == cells[i].n &&
                    !strncasecmp(csv_names[k].name, cells[i].text, cells[i].n) &&
                    csv->at[csv_names[k].column] < 0)
                    csv->at[csv_names[k].column] = (int)i;
        return head_is_whole(csv->at, csv->timed)
                   ? RP_OK
                   : rp_err_set(err, RP_FORMAT,
                                "'%s': the first line must name the columns op, shape%s, or "
                                "chain, elements%s",
                                path, csv->timed ? " and time_us" : "",
                                csv->timed ? " and fused_us" : "");
    }
    enum rp_code code = read_row(csv, cells, count, err);
    if (code == RP_USAGE && csv->timed)
        code = RP_FORMAT;
    return code == RP_OK ? RP_OK : rp_err_prefix(err, code, "'%s' line %zu", path, number);
}

enum rp_code rp_samples_parse_csv(struct rp_samples *out, const char *name, const char *text,
                                  const char *device, bool timed, struct rp_err *err)
{
    struct csv csv = {.out = out, .device = device, .timed = timed};

    RP_TRY(rp_lines_parse(name, text, read_line, &csv, err));
    return rp_vec_push(&out->sources, rp_arena_text(&out->arena, name), err);
}

enum rp_code rp_samples_read_csv(struct rp_samples *out, const char *path, const char *device,
                                 bool timed, struct rp_err *err)
{
    struct csv csv = {.out = out, .device = device, .timed = timed};
    struct rp_arena text = RP_ARENA_INIT;
    enum rp_code code = rp_lines_read(path, MOST_BYTES, &text, read_line, &csv, err);

    rp_arena_release(&text);
    RP_TRY(code);
    return rp_vec_push(&out->sources, rp_arena_text(&out->arena, path), err);
}
