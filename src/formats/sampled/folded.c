/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads folded (collapsed) stacks: each line is a stack, outermost frame first, with a count after
 * the last space:
 *
 *     main;step;load 12               FlameGraph's scripts, export_stacks of PyTorch
 *     process 7:"python a.py";thread (0x7f): "MainThread";main (a.py:3) 5      py-spy --format raw
 *     P7;T0:8;a.py:main:3 1000        austin, in microseconds; with -f "time,idle,memory"
 *
 * Leading frames that name a process or a thread become the thread of the sample. There are no
 * times.
 */
#include "base/decimal.h"
#include "formats/sampled/sampled.h"

struct folded {
    struct rp_profile p;
    bool austin;  /* metrics are microseconds */
    bool memory;  /* of austin: kibibytes */
    bool two;     /* two counts in each line, as difffolded.pl writes */
    bool rounded; /* a count had a fraction */
    int64_t pid, tid;
    struct rp_bytes process_name, thread_name;
};

static bool cut_last_word(struct rp_bytes *line, struct rp_bytes *word)
{
    const uint8_t *space = line->n ? memrchr(line->at, ' ', line->n) : NULL;

    if (!space || space == line->at)
        return false;
    *word = (struct rp_bytes){space + 1, (size_t)(line->at + line->n - space - 1)};
    line->n = (size_t)(space - line->at);
    return true;
}

static bool is_count(struct rp_bytes word)
{
    int64_t value;

    return word.n && !(rp_decimal_parse((const char *)word.at, word.n, 0, &value) &
                       (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE));
}

/* Reads "1000", or the first number of "1000,0,-20", which austin writes with -f. *idle tells that
   the second is not 0. */
static bool parse_metric(struct folded *f, struct rp_bytes word, int64_t *weight, bool *idle)
{
    const uint8_t *comma = f->austin ? memchr(word.at, ',', word.n) : NULL;
    struct rp_bytes first = {word.at, comma ? (size_t)(comma - word.at) : word.n};
    unsigned flags;

    *idle = comma && comma + 1 < word.at + word.n && comma[1] == '1';
    if (!is_count(first))
        return false;
    flags =
        rp_decimal_parse((const char *)first.at, first.n, f->austin && !f->memory ? 3 : 0, weight);
    f->rounded |= (flags & RP_DECIMAL_ROUNDED) != 0;
    if (f->memory)
        return !__builtin_mul_overflow(*weight, INT64_C(1024), weight);
    return !(flags & RP_DECIMAL_RANGE);
}

/* The number made by the digits at the beginning of a text. */
static int64_t leading_number(struct rp_bytes text)
{
    int64_t x = 0;
    size_t n = 0;

    while (n < text.n && text.at[n] >= '0' && text.at[n] <= '9')
        n++;
    return rp_bytes_number((struct rp_bytes){text.at, n}, &x) ? x : 0;
}

static struct rp_bytes after(struct rp_bytes b, size_t n)
{
    return (struct rp_bytes){b.at + n, b.n - n};
}

/* Whether a frame is "P7" or "T0:8" of austin. */
static bool is_austin_id(const struct folded *f, struct rp_bytes part, char letter)
{
    return f->austin && part.n > 1 && part.at[0] == (uint8_t)letter && part.at[1] >= '0' &&
           part.at[1] <= '9';
}

/* Whether a frame names the process or thread; if so, the name is kept. */
static bool take_thread(struct folded *f, struct rp_bytes part)
{
    const uint8_t *colon = memrchr(part.at, ':', part.n);

    if (is_austin_id(f, part, 'P')) {
        f->pid = leading_number(after(part, 1));
    } else if (is_austin_id(f, part, 'T')) {
        f->tid = leading_number(
            after(part, colon ? (size_t)(colon - part.at) + 1 : (size_t)1)); /* interpreter:id */
    } else if (rp_bytes_begin(part, "process ") && part.n > 8 && leading_number(after(part, 8))) {
        f->pid = leading_number(after(part, 8));
        f->process_name = part;
    } else if (rp_bytes_begin(part, "thread (") || rp_bytes_begin(part, "Thread ")) {
        f->tid = RP_PROFILE_BY_NAME;
        f->thread_name = part;
    } else {
        return false;
    }
    return true;
}

static enum rp_code read_folded_line(struct folded *f, struct rp_bytes line)
{
    struct rp_bytes word, other;
    int64_t weight;
    rp_track track;
    bool idle;

    if (!cut_last_word(&line, &word) || !parse_metric(f, word, &weight, &idle))
        return rp_profile_bad_line(&f->p, "no stack with a count after it");
    struct rp_bytes rest = line;
    if (f->two && cut_last_word(&rest, &other) && is_count(other))
        line = rest;
    f->pid = f->tid = 0;
    f->process_name.n = f->thread_name.n = 0;

    /* The first parts may name the process and the thread. */
    struct rp_bytes stack = line;
    bool leading = true;
    while (stack.n) {
        const uint8_t *semi = memchr(stack.at, ';', stack.n);
        struct rp_bytes part = {stack.at, semi ? (size_t)(semi - stack.at) : stack.n};

        stack = after(stack, part.n + (semi != NULL));
        leading = leading && take_thread(f, part);
        if (leading || !part.n)
            continue;
        struct rp_profile_frame frame = rp_profile_parse_frame(part);
        RP_TRY(rp_profile_push(&f->p, &frame));
    }
    RP_TRY(rp_profile_thread(&f->p, f->pid, f->tid, f->thread_name, &track));
    if (f->process_name.n)
        RP_TRY(rp_profile_process_name(&f->p, track, f->process_name));
    return rp_profile_sample(&f->p, track, RP_NO_TS, weight, idle ? RP_SAMPLE_WAITED : 0);
}

static void folded_release(struct folded *f)
{
    rp_profile_release(&f->p);
}

static enum rp_code read_folded(struct rp_input *in, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(folded_release) struct folded f = {0};

    RP_TRY(rp_profile_begin(&f.p, in, options, "folded", err));
    struct rp_bytes line, word;
    bool first = true;
    while (rp_profile_line(&f.p, &line)) {
        line = rp_bytes_trim(line);
        if (line.n && line.at[0] == '#') {
            /* "# austin: 3.6.0", "# mode: wall" */
            if (rp_bytes_begin(line, "# austin"))
                f.austin = true;
            if (rp_bytes_begin(line, "# mode: memory"))
                f.memory = true;
            continue;
        }
        if (!line.n)
            continue;
        if (first) {
            struct rp_bytes rest = line;
            f.austin |= rp_bytes_begin(line, "P") && memmem(line.at, line.n, ";T", 2) &&
                        leading_number(after(line, 1));
            f.two = false;
            if (cut_last_word(&rest, &word)) /* the count; before it another one, or a frame */
                f.two = cut_last_word(&rest, &word) && is_count(word);
            first = false;
        }
        RP_TRY(read_folded_line(&f, line));
        if (f.p.line % 4096 == 0)
            RP_TRY(rp_proto_trace_progress(&f.p.t, f.p.at, f.p.err));
    }
    const char *name = !f.austin ? "samples" : f.memory ? "memory" : "time";
    uint32_t unit = !f.austin ? RP_WEIGHT_COUNT : f.memory ? RP_WEIGHT_BYTES : RP_WEIGHT_NS;
    if (f.two)
        RP_TRY(rp_builder_warn(f.p.t.builder, f.p.err,
                               "lines have two counts, of two profiles: the second was read"));
    if (f.rounded)
        RP_TRY(rp_builder_warn(f.p.t.builder, f.p.err,
                               "counts with a fraction were rounded to whole numbers"));
    RP_TRY(rp_profile_unit(&f.p, unit, name));
    return rp_profile_end(&f.p, to);
}

static bool has_name_of_folded(const char *file)
{
    const char *dot = file ? strrchr(file, '.') : NULL;

    return dot && (!strcmp(dot, ".folded") || !strcmp(dot, ".collapsed"));
}

/* Recognises files in which nearly every line is a stack with a count, and most have several
   frames. With stacks of one frame the file's name must tell, because lists of words with numbers
   look the same. */
static enum rp_sniff sniff_folded(const uint8_t *head, size_t n, const char *file)
{
    struct rp_profile p = {.t = {.bytes = head, .n = n}, .at = head};
    struct rp_bytes line, word;
    size_t lines = 0, fit = 0, nested = 0;

    if (memchr(head, '\0', n))
        return RP_SNIFF_NO;
    while (lines < 500 && rp_profile_line(&p, &line)) {
        if (p.at == head + n && n >= RP_SNIFF_BYTES)
            break; /* cut */
        line = rp_bytes_trim(line);
        if (rp_bytes_begin(line, "# austin"))
            return RP_SNIFF_CERTAIN;
        if (!line.n || line.at[0] == '#')
            continue;
        lines++;
        nested += memchr(line.at, ';', line.n) != NULL;
        fit += cut_last_word(&line, &word) && (is_count(word) || memchr(word.at, ',', word.n)) &&
               line.at[0] != '{' && line.at[0] != '<';
    }
    return lines && fit * 20 >= lines * 19 && (nested * 2 >= lines || has_name_of_folded(file))
               ? RP_SNIFF_LIKELY
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_folded = {
    .name = "folded",
    .summary = "folded (collapsed) stacks: samples without times",
    .files = "*.folded, *.collapsed, *.txt",
    .written_by = "FlameGraph's scripts, py-spy --format raw, austin, PyTorch's export_stacks",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_folded,
    .read = read_folded,
};
