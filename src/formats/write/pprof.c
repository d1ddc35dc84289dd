/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes pprof's profile.proto, for `go tool pprof`, Parca, Pyroscope and Perfetto. A frame is a
 * location and a function with the same number; a thread is a label of its samples. If the trace
 * tells whether threads ran or waited, a sample has two values: `cpu`, and `wall`, which is the
 * last and so the one that pprof shows unless told otherwise (-sample_index=cpu). Only one message
 * at a time is in memory.
 */
#include "base/hash.h"
#include "formats/write/stacks.h"
#include "formats/write/writers.h"
#include "io/emit.h"
#include "io/proto_write.h"

struct pprof_writer {
    const struct rp_trace *t;
    struct rp_emit e;
    struct rp_proto_writer w;
    RP_VEC(const char *) strings;
    struct rp_map string_of; /* from the trace's string to its number in the profile */
    bool has_waits;          /* samples have two values */
    rp_stack_path path;
    struct rp_err *err;
};

static enum rp_code flush_message(struct pprof_writer *p)
{
    struct rp_bytes bytes;

    RP_TRY(rp_proto_written(&p->w, &bytes, p->err));
    rp_emit_bytes(&p->e, (const char *)bytes.at, bytes.n);
    rp_proto_rewind(&p->w);
    return RP_OK;
}

static enum rp_code add_string(struct pprof_writer *p, const char *text, uint64_t *out)
{
    *out = p->strings.n;
    return rp_vec_push(&p->strings, text, p->err);
}

static enum rp_code string_of(struct pprof_writer *p, rp_str s, uint64_t *out)
{
    uint32_t number;

    RP_TRY(rp_map_intern(&p->string_of, s, (uint32_t)p->strings.n, &number, p->err));
    *out = number;
    return number < p->strings.n ? RP_OK : add_string(p, rp_trace_str(p->t, s), out);
}

static bool has_waits(const struct rp_call_samples *s)
{
    uint32_t i = 0;

    while (i < s->n && !(s->flags[i] & RP_SAMPLE_WAITED))
        i++;
    return i < s->n && s->unit == RP_WEIGHT_NS && !s->unit_name;
}

static enum rp_code put_type(struct pprof_writer *p, uint64_t type, uint64_t unit)
{
    size_t at = rp_proto_begin(&p->w, 1);
    rp_proto_put_varint(&p->w, 1, type);
    rp_proto_put_varint(&p->w, 2, unit);
    rp_proto_end(&p->w, at);
    return flush_message(p);
}

/* thread and thread_id are the numbers of these words. */
static enum rp_code put_labels(struct pprof_writer *p, rp_track track, const uint64_t key[2])
{
    const struct rp_track_info *k = &p->t->tracks[track];
    rp_str name = k->name ? k->name : k->text;
    uint64_t text;

    if (name) {
        RP_TRY(string_of(p, name, &text));
        size_t at = rp_proto_begin(&p->w, 3);
        rp_proto_put_varint(&p->w, 1, key[0]);
        rp_proto_put_varint(&p->w, 2, text);
        rp_proto_end(&p->w, at);
    }
    if (k->has_id && !k->text && k->native_id) {
        size_t at = rp_proto_begin(&p->w, 3);
        rp_proto_put_varint(&p->w, 1, key[1]);
        rp_proto_put_varint(&p->w, 3, (uint64_t)k->native_id);
        rp_proto_end(&p->w, at);
    }
    return RP_OK;
}

static enum rp_code put_sample(struct pprof_writer *p, uint32_t i, const uint64_t key[2])
{
    const struct rp_call_samples *s = &p->t->samples;

    RP_TRY(rp_stack_walk(p->t, s->stack[i], &p->path, p->err));
    size_t at = rp_proto_begin(&p->w, 2);
    size_t list = rp_proto_begin(&p->w, 1);
    for (size_t k = 0; k < p->path.n; k++)
        rp_proto_add_varint(&p->w, (uint64_t)p->path.at[k] + 1);
    rp_proto_end(&p->w, list);
    list = rp_proto_begin(&p->w, 2);
    if (p->has_waits)
        rp_proto_add_varint(&p->w, s->flags[i] & RP_SAMPLE_RAN ? (uint64_t)s->weight[i] : 0);
    rp_proto_add_varint(&p->w, (uint64_t)s->weight[i]);
    rp_proto_end(&p->w, list);
    RP_TRY(put_labels(p, s->track[i], key));
    rp_proto_end(&p->w, at);
    return flush_message(p);
}

static enum rp_code put_profile(struct pprof_writer *p)
{
    const struct rp_call_samples *s = &p->t->samples;
    uint64_t key[2], none;

    RP_TRY(string_of(p, 0, &none)); /* string 0 is empty */
    RP_TRY(add_string(p, "thread", &key[0]));
    RP_TRY(add_string(p, "thread_id", &key[1]));

    /* What the values of a sample mean. */
    static const char *const types[RP_WEIGHT_UNITS] = {"cpu", "samples", "space"};
    static const char *const units[RP_WEIGHT_UNITS] = {"nanoseconds", "count", "bytes"};
    uint64_t type, unit;
    if (s->unit_name)
        RP_TRY(string_of(p, s->unit_name, &type));
    else
        RP_TRY(add_string(p, types[s->unit], &type));
    RP_TRY(add_string(p, units[s->unit], &unit));
    RP_TRY(put_type(p, type, unit));
    if (p->has_waits) {
        RP_TRY(add_string(p, "wall", &type));
        RP_TRY(put_type(p, type, unit));
    }
    for (uint32_t i = 0; i < s->nframes; i++) {
        /* A frame is a location with one line of a function. */
        const struct rp_call_frame *f = &p->t->samples.frame[i];
        uint64_t name, file;
        RP_TRY(string_of(p, f->name, &name));
        RP_TRY(string_of(p, f->file, &file));
        size_t at = rp_proto_begin(&p->w, 4);
        rp_proto_put_varint(&p->w, 1, (uint64_t)i + 1);
        size_t line = rp_proto_begin(&p->w, 4);
        rp_proto_put_varint(&p->w, 1, (uint64_t)i + 1);
        rp_proto_put_varint(&p->w, 2, f->line);
        rp_proto_end(&p->w, line);
        rp_proto_end(&p->w, at);
        at = rp_proto_begin(&p->w, 5);
        rp_proto_put_varint(&p->w, 1, (uint64_t)i + 1);
        rp_proto_put_varint(&p->w, 2, name);
        rp_proto_put_varint(&p->w, 3, name);
        rp_proto_put_varint(&p->w, 4, file);
        rp_proto_end(&p->w, at);
        RP_TRY(flush_message(p));
    }
    for (uint32_t i = 0; i < s->n; i++)
        RP_TRY(put_sample(p, i, key));
    for (uint32_t i = 0; i < p->strings.n; i++) {
        rp_proto_put_text(&p->w, 6, p->strings.at[i]);
        RP_TRY(flush_message(p));
    }
    return RP_OK;
}

static void pprof_writer_release(struct pprof_writer *p)
{
    rp_emit_abandon(&p->e);
    rp_proto_writer_release(&p->w);
    rp_vec_release(&p->strings);
    rp_map_release(&p->string_of);
    rp_vec_release(&p->path);
}

static enum rp_code write_pprof(const struct rp_trace *t, const char *path,
                                const struct rp_write_options *options, struct rp_err *err)
{
    RP_SCOPED(pprof_writer_release)
    struct pprof_writer p = {.t = t, .has_waits = has_waits(&t->samples), .err = err};

    RP_TRY(rp_stacks_require(t, err));
    RP_TRY(rp_emit_open(&p.e, path, options ? options->gzip_level : 0, err));
    RP_TRY(put_profile(&p));
    return rp_emit_close(&p.e, err);
}

const struct rp_writer rp_writer_pprof = {
    .name = "pprof",
    .endings = {".pprof", ".pprof.gz", ".pb.gz"},
    .summary = "samples for pprof, Parca, Pyroscope and Perfetto",
    .streams = true,
    .available = true,
    .samples = RP_SAMPLES_ALL,
    .write = write_pprof,
};
