/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a native file sequentially: all sizes are known, so checksums are computed before anything
 * is written, and header and table come first. Costs one pass for the checksums and one for
 * writing.
 */
#include "trace/rpt/layout.h"
#include "trace/rpt/rpt.h"

#include <stdlib.h>

struct part {
    struct rp_rpt_header header;
    struct rp_rpt_head head;
    const struct rp_rpt_section *section;
    size_t n; /* sections after the head */
    struct rp_rpt_entry *entry;
};

static const void *array_of(const struct rp_trace *t, const struct rp_rpt_section *s)
{
    const char *field = (const char *)t + s->pointer;
    const void *array;

    if (s->inlined)
        return field;
    memcpy(&array, field, sizeof array);
    return array;
}

static void fill_entry(struct rp_rpt_entry *e, uint32_t id, uint32_t size, const void *array,
                       uint64_t count, uint64_t *at)
{
    e->id = id;
    e->element_bytes = size;
    e->offset = *at;
    e->bytes = count * size;
    e->checksum = rp_rpt_checksum(array, (size_t)e->bytes);
    *at += rp_rpt_padded(e->bytes);
}

static void fill_entries(struct part *p, const struct rp_trace *trace)
{
    uint64_t table_bytes = (p->n + 1) * sizeof *p->entry, at;

    at = rp_rpt_padded(sizeof p->header + table_bytes);
    p->head = rp_rpt_head_of(trace);
    fill_entry(&p->entry[0], RP_RPT_HEAD_ID, sizeof p->head, &p->head, 1, &at);
    for (size_t i = 0; i < p->n; i++)
        fill_entry(&p->entry[i + 1], p->section[i].id, p->section[i].element_bytes,
                   array_of(trace, &p->section[i]), rp_rpt_count(&p->head, &p->section[i]), &at);
    memset(&p->header, 0, sizeof p->header);
    memcpy(p->header.magic, RP_RPT_MAGIC, sizeof p->header.magic);
    p->header.version = RP_RPT_VERSION;
    p->header.byte_order = RP_RPT_BYTE_ORDER;
    p->header.part_bytes = at;
    p->header.nsections = (uint32_t)p->n + 1;
    p->header.header_bytes = sizeof p->header;
    p->header.table_checksum = rp_rpt_checksum(p->entry, (size_t)table_bytes);
    p->header.header_checksum = rp_rpt_checksum(&p->header, sizeof p->header);
}

static void write_padded(struct rp_out *out, const void *bytes, uint64_t n)
{
    static const uint8_t zeros[RP_RPT_ALIGN];

    if (n)
        rp_out_write(out, bytes, (size_t)n);
    rp_out_write(out, zeros, (size_t)(rp_rpt_padded(n) - n));
}

enum rp_code rp_rpt_write(const struct rp_trace *trace, struct rp_out *out, struct rp_err *err)
{
    struct part p = {0};

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    return rp_err_set(err, RP_UNSUPPORTED,
                      "native files are written on little-endian machines only");
#endif
    RP_TRY(rp_trace_require(trace, RP_NEED_ALL, err));
    p.section = rp_rpt_sections(&p.n);
    p.entry = calloc(p.n + 1, sizeof *p.entry);
    RP_TRY(rp_err_need(p.entry, err, "writing a native file"));
    fill_entries(&p, trace);
    rp_out_write(out, &p.header, sizeof p.header);
    write_padded(out, p.entry, (p.n + 1) * sizeof *p.entry);
    write_padded(out, &p.head, sizeof p.head);
    for (size_t i = 0; i < p.n; i++)
        write_padded(out, array_of(trace, &p.section[i]), p.entry[i + 1].bytes);
    free(p.entry);
    return rp_out_flush(out, err);
}
