/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the text of `perf script`: a line about the sample, its frames with the innermost first, an
 * empty line.
 *
 *     python3  9/11 [002] 203265.377019:    1001001 cpu-clock:
 *     	             6f1 gamma+0x1 (/workdir/forks)
 *     	           21b97 __libc_start_main (/lib/libc-2.27.so)
 *
 * The id of the thread, the processor and the period may be missing. Only the first event of the
 * file is read: periods of different events cannot be added up. For a clock, the period is the time
 * that a sample stands for; for cycles, it is their number.
 */
#include "base/decimal.h"
#include "formats/sampled/sampled.h"
#include "trace/secrets.h"

#include <ctype.h>
#include <stdio.h>

struct perf_head {
    struct rp_bytes comm, event, rest; /* rest: after the event */
    int64_t pid, tid, ts_ns, period;   /* period: -1 if there is none */
};

struct perf_text {
    struct rp_profile p;
    struct rp_bytes event; /* the one that is read */
    bool clock, periods;
    uint64_t others; /* number of samples of other events */
};

/* Takes the next word of a line; the line then begins after it. */
static struct rp_bytes next_word(struct rp_bytes *line)
{
    while (line->n && isspace(line->at[0])) {
        line->at++;
        line->n--;
    }
    struct rp_bytes word = {line->at, 0};
    while (word.n < line->n && !isspace(line->at[word.n]))
        word.n++;
    line->at += word.n;
    line->n -= word.n;
    return word;
}

/* "9" or "9/11" */
static bool parse_ids(struct rp_bytes word, struct perf_head *h)
{
    const uint8_t *slash = memchr(word.at, '/', word.n);
    struct rp_bytes first = {word.at, slash ? (size_t)(slash - word.at) : word.n};

    if (!rp_bytes_number(first, &h->pid))
        return false;
    h->tid = h->pid;
    return !slash || rp_bytes_number((struct rp_bytes){slash + 1, word.n - first.n - 1}, &h->tid);
}

/* "203265.377019:" */
static bool parse_time(struct rp_bytes word, int64_t *ns)
{
    if (word.n < 2 || word.at[word.n - 1] != ':' || !isdigit(word.at[0]))
        return false;
    return !(rp_decimal_parse((const char *)word.at, word.n - 1, 9, ns) &
             (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE));
}

/* Parses what follows the name of the thread. */
static bool parse_rest(struct rp_bytes line, struct perf_head *h)
{
    if (!parse_ids(next_word(&line), h))
        return false;
    struct rp_bytes word = next_word(&line);
    if (word.n && word.at[0] == '[')
        word = next_word(&line);
    if (!parse_time(word, &h->ts_ns))
        return false;
    word = next_word(&line);
    h->period = -1;
    if (rp_bytes_number(word, &h->period))
        word = next_word(&line);
    else
        h->period = -1;
    if (word.n < 2 || word.at[word.n - 1] != ':')
        return false;
    while (word.n && word.at[word.n - 1] == ':')
        word.n--;
    h->event = word;
    h->rest = rp_bytes_trim(line);
    return true;
}

/* The name of a thread may have spaces and numbers, so the first split is used after which the rest
   fits. */
static bool parse_head(struct rp_bytes line, struct perf_head *h)
{
    struct rp_bytes rest = line;

    if (!line.n || isspace(line.at[0]))
        return false;
    for (;;) {
        struct rp_bytes word = next_word(&rest);

        if (!word.n)
            return false;
        h->comm = (struct rp_bytes){line.at, (size_t)(word.at + word.n - line.at)};
        if (parse_rest(rest, h))
            return true;
    }
}

/* "6f1 gamma+0x1 (/workdir/forks)" */
static bool parse_perf_frame(struct rp_bytes line, struct rp_profile_frame *f)
{
    struct rp_bytes dso = {0};

    line = rp_bytes_trim(line);
    struct rp_bytes address = next_word(&line);
    for (size_t i = 0; i < address.n; i++)
        if (!isxdigit(address.at[i]))
            return false;
    line = rp_bytes_trim(line);
    const uint8_t *open =
        line.n && line.at[line.n - 1] == ')' ? memrchr(line.at, '(', line.n) : NULL;
    if (open) {
        dso = (struct rp_bytes){open + 1, (size_t)(line.at + line.n - open - 2)};
        line.n = (size_t)(open - line.at);
        line = rp_bytes_trim(line);
    }
    const uint8_t *plus = line.n ? memrchr(line.at, '+', line.n) : NULL;
    if (plus && plus > line.at && line.at + line.n - plus > 3 && plus[1] == '0' && plus[2] == 'x')
        line.n = (size_t)(plus - line.at);
    *f = rp_profile_parse_frame(line.n ? line : rp_bytes_of("[unknown]"));
    if (f->kind == RP_FRAME_OTHER) {
        f->file = dso;
        if (rp_bytes_are(dso, "[unknown]"))
            f->file.n = 0;
        f->kind = rp_profile_kind_of_file(dso);
    }
    return address.n > 0;
}

static bool counts_while_running(struct rp_bytes event)
{
    return rp_bytes_begin(event, "cpu-clock") || rp_bytes_begin(event, "task-clock") ||
           rp_bytes_begin(event, "cycles") || rp_bytes_begin(event, "cpu-cycles") ||
           rp_bytes_begin(event, "instructions") || memmem(event.at, event.n, "/cycles", 7) ||
           memmem(event.at, event.n, "/cpu-cycles", 11);
}

static enum rp_code read_sample(struct perf_text *r, const struct perf_head *h)
{
    rp_track track;

    if (!r->event.n) {
        char name[80];
        int n = (int)(h->event.n < 70 ? h->event.n : 70);
        r->event = h->event;
        r->periods = h->period >= 0;
        r->clock = r->periods && (rp_bytes_begin(h->event, "cpu-clock") ||
                                  rp_bytes_begin(h->event, "task-clock"));
        snprintf(name, sizeof name, "%.*s", n, (const char *)h->event.at);
        RP_TRY(rp_profile_unit(&r->p, r->clock ? RP_WEIGHT_NS : RP_WEIGHT_COUNT,
                               r->periods ? name : "samples"));
    }

    /* Reads the frames up to the empty line. A sample without a call chain has its only frame in
       its own line. */
    struct rp_profile_frame frame;
    struct rp_bytes line;
    if (h->rest.n && parse_perf_frame(h->rest, &frame) && frame.name.n)
        RP_TRY(rp_profile_keep(&r->p, &frame));
    while (r->p.at < r->p.t.bytes + r->p.t.n && isspace(*r->p.at) &&
           rp_profile_line(&r->p, &line)) {
        if (!rp_bytes_trim(line).n)
            break;
        if (!parse_perf_frame(line, &frame)) {
            r->p.skipped++;
            continue;
        }
        RP_TRY(rp_profile_keep(&r->p, &frame));
    }
    RP_TRY(rp_profile_push_kept(&r->p));
    if (h->event.n != r->event.n || memcmp(h->event.at, r->event.at, h->event.n) != 0) {
        r->others++;
        r->p.stack = RP_NONE;
        return RP_OK;
    }
    RP_TRY(rp_profile_thread(&r->p, h->pid, h->tid, h->comm, &track));
    return rp_profile_sample(&r->p, track, h->ts_ns, r->periods && h->period >= 0 ? h->period : 1,
                             counts_while_running(h->event) ? RP_SAMPLE_RAN : 0);
}

static void perf_text_release(struct perf_text *r)
{
    rp_profile_release(&r->p);
}

static enum rp_code read_perf_script(struct rp_input *in, const struct rp_read_options *options,
                                     struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(perf_text_release) struct perf_text r = {0};

    RP_TRY(rp_profile_begin(&r.p, in, options, "perf-script", err));
    struct rp_bytes line;
    struct perf_head h;
    while (rp_profile_line(&r.p, &line)) {
        if (!line.n || line.at[0] == '#') {
            /* Lines of `perf script --header`, which are not read. */
            if (rp_bytes_begin(line, "# hostname :"))
                r.p.unread |= RP_SECRET_BIT(HOST);
            if (rp_bytes_begin(line, "# cmdline :"))
                r.p.unread |= RP_SECRET_BIT(COMMAND);
            continue;
        }
        if (parse_head(line, &h))
            RP_TRY(read_sample(&r, &h));
        else
            r.p.skipped += rp_bytes_trim(line).n != 0;
        if (r.p.samples % 1024 == 0)
            RP_TRY(rp_proto_trace_progress(&r.p.t, r.p.at, r.p.err));
    }
    if (r.others) {
        RP_TRY(rp_builder_warn(r.p.t.builder, r.p.err,
                               "%llu samples of other events than '%.*s' were left out",
                               (unsigned long long)r.others, (int)(r.event.n < 70 ? r.event.n : 70),
                               (const char *)r.event.at));
    }
    return rp_profile_end(&r.p, to);
}

/* Recognises a sample in the first line that is not a comment, followed by a frame or an empty
   line. */
static enum rp_sniff sniff_perf_script(const uint8_t *head, size_t n, const char *file)
{
    struct rp_profile p = {.t = {.bytes = head, .n = n}, .at = head};
    struct rp_profile_frame frame;
    struct rp_bytes line;
    struct perf_head h;

    (void)file;
    while (rp_profile_line(&p, &line)) {
        if (!line.n || line.at[0] == '#')
            continue;
        if (!parse_head(line, &h))
            return RP_SNIFF_NO;
        if (!rp_profile_line(&p, &line) || !rp_bytes_trim(line).n || parse_head(line, &h))
            return h.rest.n ? RP_SNIFF_LIKELY : RP_SNIFF_NO;
        return parse_perf_frame(line, &frame) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
    }
    return RP_SNIFF_NO;
}

const struct rp_format rp_format_perf_script = {
    .name = "perf-script",
    .summary = "samples of perf, as its text",
    .files = "*.txt, *.perf",
    .written_by = "perf script",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_perf_script,
    .read = read_perf_script,
};
