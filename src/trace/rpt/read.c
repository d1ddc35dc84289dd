/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a native file in place. Opening checks the header and the section table (every section has
 * one possible position, so none overlap), strings and the small tables; the large columns are
 * verified when they are first required. A valid checksum does not make a file trustworthy, so
 * every id and offset is checked too (ranges.c) before a section is used.
 */
#include "trace/ranges.h"
#include "trace/rpt/layout.h"
#include "trace/rpt/rpt.h"
#include "trace/trace_store.h"

bool rp_rpt_sniff(const uint8_t *bytes, size_t n)
{
    return n >= 8 && !memcmp(bytes, RP_RPT_MAGIC, 8);
}

static enum rp_code check_version(const struct rp_rpt_header *h, struct rp_err *err)
{
    if (h->byte_order == __builtin_bswap32(RP_RPT_BYTE_ORDER))
        return rp_err_set(err, RP_UNSUPPORTED,
                          "native file in the other byte order; convert it where it was written");
    if (h->byte_order != RP_RPT_BYTE_ORDER)
        return rp_err_set_at(err, RP_FORMAT, 12, "damaged native file: no byte order at byte 12");
    if (h->version > RP_RPT_VERSION)
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "native file of format %u, but this program reads format %u; use a newer reprise, or "
            "read the original trace again",
            h->version, RP_RPT_VERSION);
    if (h->version < RP_RPT_VERSION)
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "native file of the old format %u, but this program reads format %u; read the "
            "original trace again",
            h->version, RP_RPT_VERSION);
    return RP_OK;
}

static enum rp_code read_header(const uint8_t *bytes, size_t n, struct rp_rpt_header *h,
                                struct rp_err *err)
{
    if (!rp_rpt_sniff(bytes, n))
        return rp_err_set(err, RP_FORMAT, "not a native trace file");
    if (n < sizeof *h)
        return rp_err_set(err, RP_FORMAT, "native file cut short: %zu bytes", n);
    memcpy(h, bytes, sizeof *h);
    RP_TRY(check_version(h, err));
    struct rp_rpt_header plain = *h;
    plain.header_checksum = 0;
    if (rp_rpt_checksum(&plain, sizeof plain) != h->header_checksum)
        return rp_err_set_at(err, RP_FORMAT, 0,
                             "damaged native file: wrong checksum of the header");
    if (h->part_bytes > n)
        return rp_err_set(err, RP_FORMAT, "native file cut short: %zu of %llu bytes", n,
                          (unsigned long long)h->part_bytes);
    return RP_OK;
}

/* Checks the header against what this version writes, and the table against its checksum. */
static enum rp_code check_table(const uint8_t *bytes, const struct rp_rpt_header *h,
                                struct rp_err *err)
{
    static const uint8_t zeros[sizeof h->reserved];
    size_t nsections;

    rp_rpt_sections(&nsections);
    uint64_t table = (nsections + 1) * sizeof(struct rp_rpt_entry);
    if (h->nsections != nsections + 1 || h->header_bytes != sizeof *h ||
        h->part_bytes % RP_RPT_ALIGN || h->part_bytes < rp_rpt_padded(sizeof *h + table) ||
        memcmp(h->reserved, zeros, sizeof zeros) != 0)
        return rp_err_set(err, RP_FORMAT, "native file with an inconsistent header");
    if (rp_rpt_checksum(bytes + sizeof *h, (size_t)table) != h->table_checksum)
        return rp_err_set_at(err, RP_FORMAT, sizeof *h,
                             "damaged native file: wrong checksum of the section table");
    return RP_OK;
}

static const struct rp_rpt_entry *entries(const uint8_t *bytes)
{
    return (const struct rp_rpt_entry *)(const void *)(bytes + sizeof(struct rp_rpt_header));
}

static enum rp_code check_sum(const uint8_t *bytes, const struct rp_rpt_entry *e, const char *name,
                              struct rp_err *err)
{
    if (rp_rpt_checksum(bytes + e->offset, (size_t)e->bytes) == e->checksum)
        return RP_OK;
    return rp_err_set_at(err, RP_FORMAT, e->offset,
                         "damaged native file: wrong checksum of section '%s' at byte %llu", name,
                         (unsigned long long)e->offset);
}

/* A section must be what this version writes, where this version writes it. */
static enum rp_code check_entry(const struct rp_rpt_entry *e, uint32_t id, uint32_t size,
                                const char *name, uint64_t count, uint64_t *at, uint64_t end,
                                struct rp_err *err)
{
    uint64_t bytes;

    if (e->id != id || e->element_bytes != size)
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "native file whose section '%s' has elements of %u bytes, not %u; read the original "
            "trace again",
            name, e->element_bytes, size);
    if (__builtin_mul_overflow(count, size, &bytes) || e->bytes != bytes || e->offset != *at ||
        bytes > end - *at || rp_rpt_padded(bytes) > end - *at)
        return rp_err_set(err, RP_FORMAT, "native file with a misplaced section '%s'", name);
    *at += rp_rpt_padded(bytes);
    return RP_OK;
}

static enum rp_code read_head(const uint8_t *bytes, const struct rp_rpt_header *h,
                              struct rp_rpt_head *head, uint64_t *at, struct rp_err *err)
{
    const struct rp_rpt_entry *e = entries(bytes);

    *at = rp_rpt_padded(sizeof *h + h->nsections * sizeof *e);
    RP_TRY(check_entry(e, RP_RPT_HEAD_ID, sizeof *head, "head", 1, at, h->part_bytes, err));
    RP_TRY(check_sum(bytes, e, "head", err));
    memcpy(head, bytes + e->offset, sizeof *head);
    if (head->one != 1 || head->nstring_offsets != head->nstrings + 1 ||
        head->nlink_offsets != head->nlinks + 1 || head->nspill_offsets < 1 || head->ndata < 8 ||
        head->nstrings < 1)
        return rp_err_set(err, RP_FORMAT, "native file whose counts contradict each other");
    return RP_OK;
}

/* Counts are 32-bit; larger ones cannot have been written. */
static enum rp_code set_counts(struct rp_trace *t, const struct rp_rpt_head *head,
                               struct rp_err *err)
{
    const uint64_t counts[] = {
        head->nevents,  head->nstrings, head->norigins, head->nprocesses,     head->ntracks,
        head->nsteps,   head->ndevices, head->nmeta,    head->nwarnings,      head->nshapes,
        head->nkeys,    head->nblocks,  head->nspilled, head->nspill_offsets, head->nlinks,
        head->nmembers, head->nflows,   head->nsamples, head->nframes,        head->nstacks};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i] >= RP_NONE)
            return rp_err_set(err, RP_FORMAT, "native file with counts beyond 32 bits");
    t->base_ns = head->base_ns;
    t->has_base = head->has_base;
    t->rank = head->rank;
    t->world_size = head->world_size;
    t->format = head->format;
    t->framework = head->framework;
    t->framework_version = head->framework_version;
    t->ev.n = (uint32_t)head->nevents;
    t->str.n = (uint32_t)head->nstrings;
    t->norigins = (uint32_t)head->norigins;
    t->nprocesses = (uint32_t)head->nprocesses;
    t->ntracks = (uint32_t)head->ntracks;
    t->nsteps = (uint32_t)head->nsteps;
    t->ndevices = (uint32_t)head->ndevices;
    t->nmeta = (uint32_t)head->nmeta;
    t->nwarnings = (uint32_t)head->nwarnings;
    t->args.nshapes = (uint32_t)head->nshapes;
    t->args.nkeys = (uint32_t)head->nkeys;
    t->args.nblocks = (uint32_t)head->nblocks;
    t->args.ndata = head->ndata - 8;
    t->args.nspilled_rows = (uint32_t)head->nspill_offsets - 1;
    t->args.nspilled = (uint32_t)head->nspilled;
    t->links.n = (uint32_t)head->nlinks;
    t->flows.n = (uint32_t)head->nflows;
    t->samples.n = (uint32_t)head->nsamples;
    t->samples.nframes = (uint32_t)head->nframes;
    t->samples.nstacks = (uint32_t)head->nstacks;
    t->samples.unit = head->weight_unit;
    t->samples.unit_name = head->weight_name;
    return RP_OK;
}

/* Points the trace to its sections and verifies the small ones. */
static enum rp_code place_sections(struct rp_trace *t, const struct rp_rpt_header *h,
                                   struct rp_err *err)
{
    const uint8_t *bytes = t->store->bytes;
    struct rp_rpt_head head;
    uint64_t at;
    size_t n, i;
    const struct rp_rpt_section *section = rp_rpt_sections(&n);

    RP_TRY(read_head(bytes, h, &head, &at, err));
    RP_TRY(set_counts(t, &head, err));
    for (i = 0; i < n; i++) {
        const struct rp_rpt_section *s = &section[i];
        const struct rp_rpt_entry *e = &entries(bytes)[i + 1];
        const uint8_t *array = bytes + e->offset;

        RP_TRY(check_entry(e, s->id, s->element_bytes, s->name, rp_rpt_count(&head, s), &at,
                           h->part_bytes, err));
        if (s->need == 0)
            RP_TRY(check_sum(bytes, e, s->name, err));
        if (s->inlined)
            memcpy((char *)t + s->pointer, array, s->element_bytes);
        else
            memcpy((char *)t + s->pointer, &array, sizeof array);
    }
    if (at != h->part_bytes)
        return rp_err_set(err, RP_FORMAT, "native file with bytes that belong to no section");
    if (t->str.offset[t->str.n] != head.nstring_bytes)
        return rp_err_set(err, RP_FORMAT, "native file whose strings do not fill their section");
    RP_TRY(rp_ranges_strings(t, err));
    return rp_ranges_tables(t, err);
}

/* Uses the bytes of the trace: those given, or a copy if they are not aligned. */
static enum rp_code set_bytes(struct rp_trace *t, const uint8_t *bytes, size_t n,
                              struct rp_err *err)
{
    void *copy = NULL;
    size_t cap = 0;

    t->store->nbytes = n;
    t->store->bytes = bytes;
    if ((uintptr_t)bytes % 8 == 0)
        return RP_OK;
    RP_TRY(rp_vec_grow(&copy, &cap, 0, n, 1, err));
    memcpy(copy, bytes, n);
    t->store->bytes = copy;
    enum rp_code code = rp_store_adopt(t->store, copy, cap, 1, err);
    if (code != RP_OK)
        rp_vec_drop(copy, cap, 1);
    return code;
}

enum rp_code rp_rpt_part_bytes(const uint8_t *bytes, size_t n, size_t *part, struct rp_err *err)
{
    struct rp_rpt_header header;

    RP_TRY(read_header(bytes, n, &header, err));
    RP_TRY(check_table(bytes, &header, err));
    *part = (size_t)header.part_bytes;
    if (n > *part && !rp_rpt_sniff(bytes + *part, n - *part))
        return rp_err_set_at(err, RP_FORMAT, *part,
                             "native file with %zu bytes after its end, at byte %zu", n - *part,
                             *part);
    return RP_OK;
}

enum rp_code rp_rpt_open(const uint8_t *bytes, size_t n, struct rp_trace **out, struct rp_err *err)
{
    struct rp_rpt_header header;
    struct rp_trace *t;
    size_t part;

    *out = NULL;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    return rp_err_set(err, RP_UNSUPPORTED, "native files are read on little-endian machines only");
#endif
    RP_TRY(rp_rpt_part_bytes(bytes, n, &part, err));
    RP_TRY(read_header(bytes, n, &header, err));
    RP_TRY(rp_trace_new(&t, err));
    enum rp_code code = set_bytes(t, bytes, part, err);
    if (code == RP_OK)
        code = place_sections(t, &header, err);
    if (code != RP_OK) {
        rp_trace_free(t);
        return code;
    }
    *out = t;
    return RP_OK;
}

static enum rp_code verify_group(const struct rp_trace *t, unsigned need, struct rp_err *err)
{
    const struct rp_rpt_entry *e = entries(t->store->bytes);
    uint64_t nmembers = 0;
    size_t n, i;
    const struct rp_rpt_section *section = rp_rpt_sections(&n);

    for (i = 0; i < n; i++) {
        if (section[i].need == need)
            RP_TRY(check_sum(t->store->bytes, &e[i + 1], section[i].name, err));
        if (section[i].pointer == offsetof(struct rp_trace, links.member))
            nmembers = e[i + 1].bytes / section[i].element_bytes;
    }
    switch (need) {
    case RP_NEED_EVENTS:
        return rp_ranges_events(t, err);
    case RP_NEED_ARGS:
        return rp_ranges_args(t, err);
    case RP_NEED_LINKS:
        return rp_ranges_links(t, nmembers, err);
    case RP_NEED_FLOWS:
        return rp_ranges_flows(t, err);
    default:
        return rp_ranges_samples(t, err);
    }
}

enum rp_code rp_trace_require(const struct rp_trace *t, unsigned needs, struct rp_err *err)
{
    if (!t->store->bytes)
        return RP_OK;
    if (needs & RP_NEED_ARGS)
        needs |= RP_NEED_EVENTS;
    unsigned done = atomic_load_explicit(&t->store->verified, memory_order_acquire);
    for (unsigned need = 1; need <= RP_NEED_ALL; need <<= 1) {
        if (!(needs & need & ~done))
            continue;
        RP_TRY(verify_group(t, need, err));
        atomic_fetch_or_explicit(&t->store->verified, need, memory_order_release);
    }
    return RP_OK;
}

/* Checks that the padding between sections is zero. */
static enum rp_code check_padding(const uint8_t *bytes, size_t nsections, struct rp_err *err)
{
    const struct rp_rpt_entry *e = entries(bytes);
    uint64_t at = sizeof(struct rp_rpt_header) + nsections * sizeof *e, to = rp_rpt_padded(at);

    for (size_t i = 0;; i++) {
        for (; at < to; at++)
            if (bytes[at])
                return rp_err_set_at(err, RP_FORMAT, at,
                                     "damaged native file: byte %llu between sections is not zero",
                                     (unsigned long long)at);
        if (i == nsections)
            return RP_OK;
        at = e[i].offset + e[i].bytes;
        to = e[i].offset + rp_rpt_padded(e[i].bytes);
    }
}

enum rp_code rp_rpt_verify(const uint8_t *bytes, size_t n, struct rp_err *err)
{
    size_t at = 0, part;

    do {
        struct rp_trace *t;

        RP_TRY(rp_rpt_part_bytes(bytes + at, n - at, &part, err));
        RP_TRY(rp_rpt_open(bytes + at, n - at, &t, err));
        enum rp_code code = rp_trace_validate(t, err);
        if (code == RP_OK) {
            const struct rp_rpt_header *h = (const void *)t->store->bytes;

            code = check_padding(t->store->bytes, h->nsections, err);
        }
        rp_trace_free(t);
        RP_TRY(code);
        at += part;
    } while (at < n);
    return RP_OK;
}

enum rp_code rp_trace_verify(const struct rp_trace *trace, struct rp_err *err)
{
    if (trace->store->bytes)
        return rp_rpt_verify(trace->store->bytes, trace->store->nbytes, err);
    return rp_trace_validate(trace, err);
}
