/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads profiles of gperftools as they were before pprof's protocol buffers. Their names end in
 * .prof, .cpu or .heap. They have words of the machine (4 or 8 bytes),
 *
 *     0, 3, version, period in microseconds, 0
 *     count, depth, addresses, the innermost first      once for each stack
 *     0, 1, 0
 *
 * and a text with the mappings of the process, or with names of the addresses. Profiles of memory
 * are texts ("heapz") with lines of bytes, count and addresses.
 */
#include "formats/sampled/sampled.h"

#include <ctype.h>
#include <math.h>

#define DEPTH_MOST 65536
#define HEAP_PERIOD \
    (512.0 * 1024) /* mean distance in bytes between two samples of memory; no file states it */

struct mapped {
    uint64_t from, to, offset;
    struct rp_bytes path;
};

struct gperftools {
    struct rp_profile p;
    struct rp_arena texts;
    RP_VEC(struct mapped) maps;
    RP_VEC(struct rp_profile_frame) names;
    struct rp_map name_of; /* address -> name */
    rp_track track;
};

/* ------------------------------------------------------------------ names of addresses */

static bool take_hex(struct rp_bytes *b, uint64_t *out)
{
    size_t i = 0;

    *out = 0;
    for (; i < b->n && isxdigit(b->at[i]) && *out >> 60 == 0; i++)
        *out = *out << 4 |
               (uint64_t)(isdigit(b->at[i]) ? b->at[i] - '0' : tolower(b->at[i]) - 'a' + 10);
    b->at += i;
    b->n -= i;
    return i > 0;
}

static struct rp_bytes after(struct rp_bytes b, size_t n)
{
    n = n < b.n ? n : b.n;
    return (struct rp_bytes){b.at + n, b.n - n};
}

/* " 0x0000001d com.example.run (Source.java:12)" */
static enum rp_code read_name(struct gperftools *g, struct rp_bytes line, bool *is_name)
{
    struct rp_bytes rest = rp_bytes_trim(line);
    uint64_t address;

    *is_name = rp_bytes_begin(rest, "0x");
    if (!*is_name)
        return RP_OK;
    rest = after(rest, 2);
    *is_name = take_hex(&rest, &address) && rest.n && rest.at[0] == ' ';
    if (!*is_name)
        return RP_OK;
    RP_TRY(rp_map_put(&g->name_of, address, (uint32_t)g->names.n, g->p.err));
    return rp_vec_push(&g->names, rp_profile_parse_frame(rp_bytes_trim(rest)), g->p.err);
}

/* "00400000-00fcb000 r-xp 00000000 00:00 21306940    program" */
static enum rp_code read_mapping(struct gperftools *g, struct rp_bytes line)
{
    struct rp_bytes rest = rp_bytes_trim(line);
    struct mapped m;

    if (!take_hex(&rest, &m.from) || !rest.n || rest.at[0] != '-')
        return RP_OK;
    rest = after(rest, 1);
    if (!take_hex(&rest, &m.to) || rest.n < 6 || rest.at[3] != 'x')
        return RP_OK;
    rest = after(rest, 6);
    if (!take_hex(&rest, &m.offset))
        return RP_OK;
    for (int field = 0; field < 2; field++) { /* skips the device and the inode */
        rest = rp_bytes_trim(rest);
        while (rest.n && rest.at[0] != ' ')
            rest = after(rest, 1);
    }
    m.path = rp_bytes_trim(rest);
    return rp_vec_push(&g->maps, m, g->p.err);
}

static enum rp_code read_names(struct gperftools *g)
{
    struct rp_bytes line;
    bool is_name;

    while (rp_profile_line(&g->p, &line)) {
        RP_TRY(read_name(g, line, &is_name));
        if (!is_name)
            RP_TRY(read_mapping(g, line));
    }
    return RP_OK;
}

static enum rp_code keep_address(struct gperftools *g, uint64_t address, bool returns)
{
    uint32_t at = rp_map_get(&g->name_of, address);
    struct rp_profile_frame f = {.kind = RP_FRAME_NATIVE};

    if (at != RP_MAP_NONE)
        return rp_profile_keep(&g->p, &g->names.at[at]);
    address -= returns && address;
    f.file = rp_bytes_of("");
    for (size_t i = 0; i < g->maps.n; i++)
        if (address >= g->maps.at[i].from && address < g->maps.at[i].to) {
            f.file = g->maps.at[i].path;
            address = address - g->maps.at[i].from + g->maps.at[i].offset;
            break;
        }
    f.name = rp_bytes_of(rp_profile_place(&g->texts, f.file, address));
    RP_TRY(rp_arena_check(&g->texts, "naming addresses", g->p.err));
    return rp_profile_keep(&g->p, &f);
}

static enum rp_code add_stack(struct gperftools *g, int64_t weight)
{
    RP_TRY(rp_profile_push_kept(&g->p));
    return rp_profile_sample(&g->p, g->track, RP_NO_TS, weight, 0);
}

/* ------------------------------------------------------------------ words */

static uint64_t word_at(const uint8_t *bytes, size_t i, size_t size)
{
    uint64_t v = 0;

    memcpy(&v, bytes + i * size, size); /* assumes the least significant byte first */
    return v;
}

/* The size of a word, 4 or 8; 0 if this is not such a profile. */
static size_t word_size(const uint8_t *bytes, size_t n)
{
    static const size_t sizes[] = {8, 4};

    for (size_t k = 0; k < 2; k++) {
        size_t size = sizes[k];

        if (n >= 8 * size && word_at(bytes, 0, size) == 0 && word_at(bytes, 1, size) == 3 &&
            word_at(bytes, 2, size) < 2 && word_at(bytes, 3, size) > 0 &&
            word_at(bytes, 3, size) < 100000000 && word_at(bytes, 4, size) == 0)
            return size;
    }
    return 0;
}

struct words {
    const uint8_t *bytes;
    size_t size, n, at;
};

static uint64_t next_word(struct words *w)
{
    return w->at < w->n ? word_at(w->bytes, w->at++, w->size) : 0;
}

/* Walks the stacks. Their names come after them, so the first walk only finds where the names
   begin. */
static enum rp_code walk_stacks(struct gperftools *g, struct words w, uint64_t period_ns, bool add,
                                size_t *end)
{
    for (w.at = 5; w.at + 3 <= w.n;) {
        uint64_t count = next_word(&w), depth = next_word(&w);
        size_t first = w.at;

        if (!count && depth == 1 && word_at(w.bytes, w.at, w.size) == 0)
            break;
        if (depth > DEPTH_MOST || depth > w.n - w.at || count > INT64_MAX / 4 / period_ns)
            return rp_err_set(g->p.err, RP_FORMAT, "byte %zu: a stack is longer than the profile",
                              (w.at - 1) * w.size);
        for (; w.at < first + depth;) {
            size_t i = w.at;
            uint64_t address = next_word(&w);

            if (add)
                RP_TRY(keep_address(g, address, i != first));
        }
        if (add && count)
            RP_TRY(add_stack(g, (int64_t)(count * period_ns)));
        g->p.kept.n = 0;
    }
    *end = (w.at + 1) * w.size;
    return RP_OK;
}

static enum rp_code read_cpu(struct gperftools *g)
{
    size_t size = word_size(g->p.t.bytes, g->p.t.n), end;
    struct words w = {g->p.t.bytes, size, size ? g->p.t.n / size : 0, 0};
    uint64_t period_ns = size ? 1000 * word_at(w.bytes, 3, size) : 0;

    if (!size)
        return rp_err_set(g->p.err, RP_FORMAT, "byte 0: the header is not one of gperftools");
    RP_TRY(rp_profile_unit(&g->p, RP_WEIGHT_NS, "cpu"));
    RP_TRY(walk_stacks(g, w, period_ns, false, &end));
    g->p.at = g->p.t.bytes + (end < g->p.t.n ? end : g->p.t.n);
    RP_TRY(read_names(g));
    return walk_stacks(g, w, period_ns, true, &end);
}

/* ------------------------------------------------------------------ memory, as a text */

static bool take_number(struct rp_bytes *b, int64_t *out)
{
    struct rp_bytes digits = *b = rp_bytes_trim(*b);

    for (digits.n = 0; digits.n < b->n && isdigit(b->at[digits.n]);)
        digits.n++;
    *b = after(*b, digits.n);
    return rp_bytes_number(digits, out);
}

/* One allocation in so many bytes is sampled on average, so a large one is more likely to be
   sampled than a small one. The size of all is estimated from the likelihood of those that were
   sampled. */
static int64_t all_bytes(int64_t bytes, int64_t count)
{
    double mean = count > 0 ? (double)bytes / (double)count : 0, all = (double)bytes;

    if (mean > 0)
        all /= -expm1(-mean / HEAP_PERIOD);
    return all < (double)(INT64_MAX / 4) ? (int64_t)all : INT64_MAX / 4;
}

static enum rp_code read_heap(struct gperftools *g)
{
    struct rp_bytes line;

    RP_TRY(rp_profile_unit(&g->p, RP_WEIGHT_BYTES, "memory"));
    RP_TRY(read_names(g));
    g->p.at = g->p.t.bytes;
    g->p.line = 0;
    while (rp_profile_line(&g->p, &line)) {
        /* A line has bytes, objects and their stack: " 7048 1 @ 0x00000003 0x00000004". */
        const uint8_t *mark = line.n ? memchr(line.at, '@', line.n) : NULL;
        struct rp_bytes head = line;
        int64_t bytes, count;
        uint64_t address;
        bool first = true;
        if (!mark || !take_number(&head, &bytes) || !take_number(&head, &count))
            continue;
        struct rp_bytes rest = {mark + 1, (size_t)(line.at + line.n - mark - 1)};
        for (rest = rp_bytes_trim(rest); rp_bytes_begin(rest, "0x"); rest = rp_bytes_trim(rest)) {
            rest = after(rest, 2);
            if (!take_hex(&rest, &address))
                return rp_profile_bad_line(&g->p, "this is not an address");
            RP_TRY(keep_address(g, address, !first));
            first = false;
        }
        RP_TRY(add_stack(g, all_bytes(bytes, count)));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the file */

static bool is_heap(const uint8_t *bytes, size_t n)
{
    return n >= 10 && !memcmp(bytes, "--- heapz ", 10);
}

static void gperftools_release(struct gperftools *g)
{
    rp_profile_release(&g->p);
    rp_vec_release(&g->maps);
    rp_vec_release(&g->names);
    rp_map_release(&g->name_of);
    rp_arena_release(&g->texts);
}

static enum rp_code read_gperftools(struct rp_input *in, const struct rp_read_options *options,
                                    struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(gperftools_release) struct gperftools g = {.texts = RP_ARENA_INIT};

    RP_TRY(rp_profile_begin(&g.p, in, options, "gperftools", err));
    RP_TRY(rp_profile_thread(&g.p, 0, 0, rp_bytes_of(""), &g.track));
    RP_TRY(is_heap(g.p.t.bytes, g.p.t.n) ? read_heap(&g) : read_cpu(&g));
    return rp_profile_end(&g.p, to);
}

static enum rp_sniff sniff_gperftools(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return is_heap(head, n) || word_size(head, n) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

const struct rp_format rp_format_gperftools = {
    .name = "gperftools",
    .summary = "profiles of gperftools before pprof's: CPU time, or memory of Java",
    .files = "*.prof, *.cpu, *.heap",
    .written_by = "gperftools' CPU profiler, older Go and Java profilers",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_gperftools,
    .read = read_gperftools,
};
