/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The native file as docs/formats/rpt.md describes it: header, section table, and the list of
 * sections that writer and reader share. Inside src/trace only.
 */
#include "trace/trace.h"

#define RP_RPT_MAGIC      "\x89RPT\r\n\x1a\n"
#define RP_RPT_VERSION    4
#define RP_RPT_BYTE_ORDER 0x01020304u
#define RP_RPT_ALIGN      64

struct rp_rpt_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint64_t part_bytes; /* header, table and sections; a multiple of 64 */
    uint32_t nsections;
    uint32_t header_bytes;
    uint64_t table_checksum;
    uint64_t header_checksum; /* of the 64 bytes with this field zero */
    uint8_t reserved[16];
};

struct rp_rpt_entry {
    uint32_t id, element_bytes;
    uint64_t offset, bytes; /* from the start of the header; bytes is without the padding */
    uint64_t checksum;
};

/* The first section: scalars of the trace and how many elements the others have. */
struct rp_rpt_head {
    int64_t base_ns;
    uint32_t has_base;
    int32_t rank, world_size;
    uint32_t format, framework, framework_version;
    uint64_t one; /* for sections of one record */
    uint64_t nevents, nstrings, nstring_offsets, nstring_bytes;
    uint64_t norigins, nprocesses, ntracks, nsteps, ndevices, nmeta, nwarnings;
    uint64_t nshapes, nkeys, nblocks, ndata, nspill_offsets, nspilled;
    uint64_t nlinks, nlink_offsets, nmembers, nflows;
    uint64_t nsamples, nframes, nstacks;
    uint32_t weight_unit, weight_name;
};

/* A section: its number in the file and where its array is in a trace. */
struct rp_rpt_section {
    uint32_t id, element_bytes;
    const char *name;
    size_t pointer; /* offset of the pointer in struct rp_trace; if inlined, that of the record
                       itself */
    size_t count;   /* offset in struct rp_rpt_head of the number of elements */
    uint8_t inlined;
    uint8_t need; /* the RP_NEED_* to which it belongs; 0: verified when the file is opened */
};

#define RP_RPT_HEAD_ID 1

/* All sections after the head, in the order of the file. */
const struct rp_rpt_section *rp_rpt_sections(size_t *n);

/* The head of this trace. */
struct rp_rpt_head rp_rpt_head_of(const struct rp_trace *trace);

/* The checksum of docs/formats/rpt.md: four lanes of 8-byte words, about 15 GB/s. */
uint64_t rp_rpt_checksum(const void *bytes, size_t n);

static inline uint64_t rp_rpt_padded(uint64_t bytes)
{
    return (bytes + RP_RPT_ALIGN - 1) & ~(uint64_t)(RP_RPT_ALIGN - 1);
}

static inline uint64_t rp_rpt_count(const struct rp_rpt_head *head, const struct rp_rpt_section *s)
{
    uint64_t n;

    memcpy(&n, (const char *)head + s->count, sizeof n);
    return n;
}
