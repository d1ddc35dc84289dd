/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads HLO modules as protobuf text: unoptimized snapshots where XLA was asked for text (XLA names
 * them .txt or .pbtxt), and anything that somebody printed. The text is turned into the wire format
 * by a schema and read as that; it stays as the program's source, because the values that a
 * snapshot has beside its module are read from it (exec/data/snapshot.h). Costs twice the text in
 * memory while it is read.
 */
#include "formats/formats.h"
#include "formats/programs.h"
#include "formats/textproto.h"

#include <string.h>

/* The message type that the first field shows. */
static const struct {
    const char *first;
    const struct rp_schema *schema;
} kinds[] = {{"hlo_module", &rp_schema_HLO_PROTO},
             {"hlo", &rp_schema_HLO_SNAPSHOT},
             {"name", &rp_schema_HLO_MODULE}};

/* The schema, or NULL; for a bare module, the words after its name decide. */
static const struct rp_schema *pbtxt_schema(const uint8_t *head, size_t n)
{
    /* The first byte after spaces and comments. */
    size_t at = rp_sniff_space(head, n, 0);

    while (at < n && head[at] == '#') {
        const uint8_t *line = memchr(head + at, '\n', n - at);

        at = rp_sniff_space(head, n, line ? (size_t)(line - head) : n);
    }

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t len = strlen(kinds[i].first), behind;

        if (n - at <= len || memcmp(head + at, kinds[i].first, len) != 0)
            continue;
        behind = rp_sniff_space(head, n, at + len);
        if (behind >= n || (head[behind] != '{' && head[behind] != ':' && head[behind] != '<'))
            continue;
        if (kinds[i].schema != &rp_schema_HLO_MODULE)
            return kinds[i].schema;
        return memmem(head, n, "entry_computation_name", 22) ||
                       memmem(head, n, "computations {", 14)
                   ? kinds[i].schema
                   : NULL;
    }
    return NULL;
}

static enum rp_sniff pbtxt_sniff(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return !memchr(head, 0, n) && pbtxt_schema(head, n) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

static enum rp_code pbtxt_read(struct rp_input *in, const struct rp_read_options *options,
                               struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer w = {0};
    struct rp_bytes written;
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    const struct rp_schema *schema = pbtxt_schema(bytes, n);
    if (!schema)
        return rp_err_set(err, RP_FORMAT, "no HLO module found");
    RP_TRY(rp_program_new("hlo", &to->program, err));
    to->content_bytes = n;
    RP_TRY(rp_textproto_parse(schema, (const char *)bytes, n, options->limits, &w, err));
    RP_TRY(rp_proto_written(&w, &written, err));
    char *kept = rp_arena_copy(&to->program->arena, (const char *)written.at, written.n);

    to->program->source.at = kept;
    to->program->source.n = kept ? written.n : 0;
    return kept ? rp_hlo_proto_fill(to->program, kept, written.n, options->limits, err)
                : rp_err_nomem(err, "reading a module");
}

const struct rp_format rp_format_hlo_pbtxt = {
    .name = "hlo-pbtxt",
    .summary = "HLO module or snapshot as protobuf text",
    .files = "*.pbtxt, *.txt",
    .written_by = "XLA: JAX, TensorFlow, PyTorch/XLA",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = pbtxt_sniff,
    .read = pbtxt_read,
};
