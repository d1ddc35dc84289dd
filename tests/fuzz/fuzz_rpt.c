/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native files. The first byte of the input says how it is meant:
 *
 *   'F'   the rest is a file as it is
 *   else  the rest is the head and then the sections, one behind the other without padding; they
 *         are put in their places under a right header, table and checksums, so that the fuzzer
 *         reaches what is checked behind them
 *
 * What opens must come through everything that reads a trace; what also passes validation must be
 * written as the same bytes again.
 */
#include "trace/rpt/layout.h"
#include "trace/rpt/rpt.h"

#include <stdlib.h>

#define MOST ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

/* Copies what is left of the input, zeros behind. */
static void take(uint8_t *to, size_t n, const uint8_t **data, size_t *size)
{
    size_t have = n < *size ? n : *size;

    memset(to, 0, n);
    if (have)
        memcpy(to, *data, have);
    *data += have;
    *size -= have;
}

static size_t place(struct rp_rpt_entry *e, uint32_t id, uint32_t element, uint64_t count,
                    size_t at)
{
    if (count > MOST)
        count = 0;
    e->id = id;
    e->element_bytes = element;
    e->offset = at;
    e->bytes = count * element;
    return at + rp_rpt_padded(e->bytes);
}

/* A whole file made of the sections in the input, or NULL; *n is its length. */
static uint8_t *assemble(const uint8_t *data, size_t size, size_t *n)
{
    struct rp_rpt_header header = {.magic = RP_RPT_MAGIC,
                                   .version = RP_RPT_VERSION,
                                   .byte_order = RP_RPT_BYTE_ORDER,
                                   .header_bytes = sizeof header};
    const struct rp_rpt_section *section;
    struct rp_rpt_entry entry[64] = {0};
    struct rp_rpt_head head;
    size_t nsections, i, at;
    uint8_t *file;

    section = rp_rpt_sections(&nsections);
    take((uint8_t *)&head, sizeof head, &data, &size);
    at = rp_rpt_padded(sizeof header + (nsections + 1) * sizeof *entry);
    at = place(&entry[0], RP_RPT_HEAD_ID, sizeof head, 1, at);
    for (i = 0; i < nsections && at < 64 * MOST; i++)
        at = place(&entry[i + 1], section[i].id, section[i].element_bytes,
                   rp_rpt_count(&head, &section[i]), at);
    file = at < 4 * MOST ? calloc(1, at) : NULL;
    if (!file)
        return NULL;
    memcpy(file + entry[0].offset, &head, sizeof head);
    for (i = 1; i <= nsections; i++)
        take(file + entry[i].offset, (size_t)entry[i].bytes, &data, &size);
    for (i = 0; i <= nsections; i++)
        entry[i].checksum = rp_rpt_checksum(file + entry[i].offset, (size_t)entry[i].bytes);
    memcpy(file + sizeof header, entry, (nsections + 1) * sizeof *entry);
    header.part_bytes = at;
    header.nsections = (uint32_t)nsections + 1;
    header.table_checksum = rp_rpt_checksum(entry, (nsections + 1) * sizeof *entry);
    header.header_checksum = rp_rpt_checksum(&header, sizeof header);
    memcpy(file, &header, sizeof header);
    *n = at;
    return file;
}

static uint64_t walk_args(const struct rp_trace *t)
{
    uint64_t sum = 0;
    rp_event e;
    uint32_t k;

    for (e = 0; e < t->ev.n; e++)
        for (k = 0; k < rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]); k++) {
            struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], k);

            sum += rp_trace_str_len(t, arg.key);
            if (arg.type >= RP_ARG_STR)
                sum += strlen(rp_trace_str(t, arg.v.s));
        }
    return sum;
}

static uint64_t walk(const struct rp_trace *t)
{
    uint64_t sum = walk_args(t);
    rp_event e;
    uint32_t i;

    for (e = 0; e < t->ev.n; e++) {
        rp_event p;
        uint32_t depth = 0;

        sum += strlen(rp_trace_str(t, t->ev.name[e])) + (uint64_t)rp_event_end_ns(t, e);
        sum += t->origins[t->ev.origin[e]].kind + t->tracks[t->ev.track[e]].kind;
        for (p = t->ev.parent[e]; p != RP_NONE && depth < 64; p = t->ev.parent[p], depth++)
            sum += p;
        if (t->ev.link[e] != RP_NONE)
            sum += (uint64_t)t->links.native_id[t->ev.link[e]];
    }
    for (i = 0; i < t->links.offset[t->links.n]; i++)
        sum += t->ev.kind[t->links.member[i]];
    for (i = 0; i < t->flows.n; i++)
        sum += t->flows.event[i] != RP_NONE ? t->ev.kind[t->flows.event[i]]
                                            : t->tracks[t->flows.track[i]].kind;
    for (i = 0; i < t->samples.nstacks; i++)
        sum += rp_trace_str_len(t, t->samples.frame[t->samples.stacks[i].frame].name);
    for (i = 0; i < t->samples.n; i++)
        sum += t->samples.stack[i] != RP_NONE ? t->samples.stacks[t->samples.stack[i]].frame
                                              : t->tracks[t->samples.track[i]].kind;
    for (i = 0; i < t->nsteps; i++)
        sum += rp_trace_str_len(t, t->steps[i].name);
    return sum;
}

static void write_again(const struct rp_trace *t, const uint8_t *bytes, size_t n)
{
    struct rp_out *out;
    const char *again;
    size_t len;

    if (rp_out_open_memory(&out, NULL) != RP_OK)
        return;
    if (rp_rpt_write(t, out, NULL) == RP_OK) {
        again = rp_out_borrow_memory(out, &len);
        require(!again || (len == n && !memcmp(again, bytes, n)));
    }
    rp_out_abandon(out);
}

static void read_file(const uint8_t *bytes, size_t n)
{
    struct rp_err err = RP_ERR_INIT;
    volatile uint64_t sum = 0;
    struct rp_trace *t;
    size_t part;

    if (rp_rpt_open(bytes, n, &t, &err) != RP_OK) {
        require(err.len > 0 && !t);
        return;
    }
    if (rp_trace_require(t, RP_NEED_ALL, &err) == RP_OK)
        sum += walk(t);
    if (rp_trace_validate(t, &err) == RP_OK && rp_rpt_part_bytes(bytes, n, &part, &err) == RP_OK &&
        rp_rpt_verify(bytes, part, &err) == RP_OK)
        write_again(t, bytes, part);
    (void)sum;
    rp_trace_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *file;
    size_t n;

    if (size == 0)
        return 0;
    if (data[0] == 'F') {
        read_file(data + 1, size - 1);
        return 0;
    }
    file = assemble(data + 1, size - 1, &n);
    if (file)
        read_file(file, n);
    free(file);
    return 0;
}
