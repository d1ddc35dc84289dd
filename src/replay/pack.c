/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs a bundle. A protobuf is stored as the module alone, without what its file recorded around
 * it; text is stored unchanged; arrays become .npy members named by their SHA-256, so equal ones
 * are stored once. TensorFlow's programs are stored as their GraphDef, BladeDISC's as the one that
 * calls the cluster. Everything is hashed first, because the manifest comes first.
 *
 * If redacted, values of inputs and outputs are stored only if they are shapes, and the program
 * loses its weights (redact.h).
 */
#include "replay/bundle.h"

#include "base/sha256.h"
#include "formats/programs.h"
#include "io/tar.h"
#include "replay/graph.h"
#include "replay/redact.h"
#include "replay/replay.h"

#include <reprise/context.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
    const char *path;
    const void *bytes; /* of the program; or: */
    const struct rp_tensor *array;
    uint64_t n;
};

struct pack_ctx {
    struct rp_arena *arena;
    struct rp_bundle bundle;
    RP_VEC(struct member) members;
    struct rp_proto_writer made;
    struct rp_tensor **want; /* expected outputs, until they are written */
    size_t nwant;
    struct rp_err *err;
};

/* ---- members ---- */

static enum rp_code add_file(struct pack_ctx *p, const struct member *m, const char *sha256)
{
    struct rp_bundle_file row = {.path = m->path, .sha256 = sha256, .bytes = (int64_t)m->n};

    RP_TRY(rp_err_need(row.path && row.sha256, p->err, "packing"));
    RP_TRY(rp_vec_push(&p->members, *m, p->err));
    return rp_bundle_add_file(&p->bundle, &row, p->err);
}

/* known: its values are shapes, so it is always stored. */
static enum rp_code add_array(struct pack_ctx *p, const char *name, const struct rp_tensor *t,
                              bool known)
{
    char head[RP_NPY_HEADER], text[512], hash[RP_SHA256_TEXT];
    size_t nhead = rp_npy_header(t, head);
    struct member m = {.array = t, .n = nhead + rp_tensor_bytes(t)};
    struct rp_bundle_array row = {.name = rp_arena_strdup(p->arena, name), .known = known};
    struct rp_sha256 sha;

    rp_tensor_shape_text(t, text, sizeof text);
    row.type = rp_arena_strdup(p->arena, text);
    RP_TRY(rp_err_need(row.name && row.type, p->err, "packing"));
    if (p->bundle.redacted && !known)
        return rp_vec_push(&p->bundle.arrays, row, p->err);
    rp_sha256_begin(&sha);
    rp_sha256_add(&sha, head, nhead);
    rp_sha256_add(&sha, t->data, rp_tensor_bytes(t));
    rp_sha256_text(&sha, hash);
    m.path = row.file = rp_arena_printf(p->arena, "arrays/%s.npy", hash);
    if (rp_bundle_find(&p->bundle, m.path) == RP_NONE)
        RP_TRY(add_file(p, &m, rp_arena_strdup(p->arena, hash)));
    return rp_vec_push(&p->bundle.arrays, row, p->err);
}

static enum rp_code add_arrays(struct pack_ctx *p, const char *kind, struct rp_tensor *const *list,
                               size_t each, size_t partitions, const bool *known)
{
    char name[64];

    for (size_t i = 0; i < each * partitions; i++) {
        if (partitions > 1)
            snprintf(name, sizeof name, "p%zu_%s%zu", i / each, kind, i % each);
        else
            snprintf(name, sizeof name, "%s%zu", kind, i);
        RP_TRY(add_array(p, name, list[i], known && known[i]));
    }
    return RP_OK;
}

/* ---- the program ---- */

/* The bytes of the program as they go into the bundle. */
static enum rp_code program_bytes(struct pack_ctx *p, struct rp_session *s, struct rp_bytes *out)
{
    struct rp_program *program = s->import.program;
    bool hlo = program && !strcmp(program->language, "hlo");
    struct rp_bytes wire;

    if (s->graph) {
        /* A GraphDef, with the names of what is fed and fetched. */
        const struct rp_replay_graph *g = s->graph;
        for (size_t i = 0; i < g->nfeeds; i++)
            RP_TRY(rp_vec_push(&p->bundle.feeds, g->feeds[i], p->err));
        for (size_t i = 0; i < g->nfetches; i++)
            RP_TRY(rp_vec_push(&p->bundle.fetches, g->fetches[i], p->err));
        p->bundle.variables = (int64_t)g->nvariables;
        *out = g->graph;
        if (!p->bundle.redacted)
            return RP_OK;
        RP_TRY(rp_redact_graph(g->graph, &p->made, p->err));
        return rp_proto_written(&p->made, out, p->err);
    }
    if (!program || (!hlo && strcmp(program->language, "stablehlo") != 0))
        return rp_err_set(p->err, RP_UNSUPPORTED,
                          "'%s': bundles hold programs in HLO, StableHLO or TensorFlow's graphs",
                          s->file);
    if (s->recorded.flat) { /* callbacks became parameters of it */
        *out = (struct rp_bytes){s->program.module, s->program.nmodule};
        return p->bundle.redacted
                   ? rp_err_set(p->err, RP_UNSUPPORTED,
                                "'%s': a program with recorded callbacks cannot be redacted",
                                s->file)
                   : RP_OK;
    }
    if (p->bundle.redacted) {
        if (!hlo)
            return rp_err_set(p->err, RP_UNSUPPORTED, "'%s': StableHLO cannot be redacted",
                              s->file);
        RP_TRY(rp_redact_program(program, p->arena, p->err));
        RP_TRY(rp_hlo_module_write(program, &p->made, p->err));
        return rp_proto_written(&p->made, out, p->err);
    }
    *out = (struct rp_bytes){s->program.bytes, s->program.nbytes};
    if (!hlo && program->source.n) /* for a file of jax.export, only the module */
        *out = (struct rp_bytes){(const uint8_t *)program->source.at, program->source.n};
    if (rp_replay_wire(s, &wire) && !rp_hlo_proto_module(wire.at, wire.n, out))
        return rp_err_set(p->err, RP_FORMAT, "'%s' holds no module", s->file);
    return out->n ? RP_OK : rp_err_set(p->err, RP_UNSUPPORTED, "'%s' is not kept", s->file);
}

static enum rp_code add_program(struct pack_ctx *p, struct rp_session *s)
{
    char hash[RP_SHA256_TEXT];
    struct rp_sha256 sha;
    struct rp_bytes bytes, wire;
    struct member m = {0};

    RP_TRY(program_bytes(p, s, &bytes));
    bool text = !p->bundle.redacted && !s->recorded.flat && !rp_replay_wire(s, &wire);
    m.path = s->graph                                      ? "program.graph.pb"
             : !text                                       ? "program.hlo.pb"
             : !strcmp(s->import.program->language, "hlo") ? "program.hlo.txt"
             : !strcmp(s->program.format, "mlir-bytecode") ? "program.mlirbc"
                                                           : "program.mlir";
    m.bytes = bytes.at;
    m.n = bytes.n;
    rp_sha256_begin(&sha);
    rp_sha256_add(&sha, bytes.at, bytes.n);
    rp_sha256_text(&sha, hash);
    p->bundle.program = m.path;
    return add_file(p, &m, rp_arena_strdup(p->arena, hash));
}

/* ---- all of it ---- */

static void abandon_text(struct rp_out **text)
{
    rp_out_abandon(*text);
}

static enum rp_code write_tar(const struct pack_ctx *p, const char *path, struct rp_err *err)
{
    RP_SCOPED(abandon_text) struct rp_out *manifest = NULL;
    struct rp_out *out;
    size_t n;

    RP_TRY(rp_out_open_memory(&manifest, err));
    rp_bundle_write(&p->bundle, manifest);
    const char *text = rp_out_borrow_memory(manifest, &n);
    RP_TRY(rp_out_flush(manifest, err));
    RP_TRY(rp_out_open(path, &out, err));
    rp_tar_put_header(out, RP_BUNDLE_MANIFEST, n);
    rp_out_write(out, text, n);
    rp_tar_put_end(out, n);
    for (size_t i = 0; i < p->members.n; i++) {
        const struct member *m = &p->members.at[i];
        char head[RP_NPY_HEADER];

        rp_tar_put_header(out, m->path, m->n);
        if (m->array) {
            rp_out_write(out, head, rp_npy_header(m->array, head));
            rp_out_write(out, m->array->data, rp_tensor_bytes(m->array));
        } else {
            rp_out_write(out, m->bytes, m->n);
        }
        rp_tar_put_end(out, m->n);
    }
    rp_tar_put_last(out);
    return rp_out_close(out, err);
}

static void pack_release(struct pack_ctx *p)
{
    for (size_t i = 0; i < p->nwant; i++)
        rp_tensor_drop(p->want[i]);
    rp_vec_release(&p->members);
    rp_bundle_release(&p->bundle);
    rp_proto_writer_release(&p->made);
}

static enum rp_code pack_to(struct rp_session *s, const char *to,
                            const struct rp_settings *settings, struct rp_result *result,
                            bool describe, struct rp_err *err)
{
    const char *flags = getenv("XLA_FLAGS");
    const char *name = strrchr(s->file, '/');
    RP_SCOPED(pack_release) struct pack_ctx p = {.arena = &result->arena, .err = err};

    p.bundle.schema = RP_BUNDLE_SCHEMA;
    p.bundle.reprise = rp_version();
    p.bundle.source = rp_arena_strdup(p.arena, name ? name + 1 : s->file);
    p.bundle.flags = flags && *flags ? rp_arena_strdup(p.arena, flags) : NULL;
    p.bundle.rank =
        rp_settings_has(settings, "rank") ? rp_settings_int(settings, "rank") : RP_ABSENT_I64;
    p.bundle.seed = rp_settings_int(settings, "seed");
    p.bundle.partitions = (int64_t)s->partitions;
    p.bundle.redacted = rp_settings_flag(settings, "redact");
    if (p.bundle.redacted) {
        p.bundle.source = NULL;
        p.bundle.flags = rp_redact_flags(p.bundle.flags, p.arena);
    }
    RP_TRY(add_program(&p, s));
    RP_TRY(add_arrays(&p, "in", s->arguments, s->signature.nin, s->partitions,
                      s->graph ? s->graph->known : NULL));

    size_t n = s->signature.nout * s->partitions;
    if (!p.bundle.redacted && (s->expected.list.n || s->snapshot.results.n)) {
        p.want = RP_ARENA_NEW(p.arena, struct rp_tensor *, n + 1);
        RP_TRY(rp_err_need(p.want, p.err, "packing"));
        p.nwant = n;
        RP_TRY(rp_session_expected(s, p.want, n, p.err));
        RP_TRY(add_arrays(&p, "out", p.want, s->signature.nout, s->partitions, NULL));
    }

    RP_TRY(write_tar(&p, to, err));
    if (describe) {
        struct rp_replay *root = result->root;

        root->ok = true;
        root->bundle = rp_arena_strdup(&result->arena, to);
        root->packed_by = p.bundle.reprise;
        root->flags = p.bundle.flags;
        root->rank = p.bundle.rank;
        root->files = RP_ARENA_NEW(&result->arena, struct rp_replay_file, p.bundle.files.n + 1);
        for (size_t i = 0; root->files && i < p.bundle.files.n; i++)
            root->files[root->nfiles++] = (struct rp_replay_file){
                p.bundle.files.at[i].path,   i ? "array" : "program",    NULL,
                p.bundle.files.at[i].sha256, p.bundle.files.at[i].bytes, true};
    }
    return RP_OK;
}

enum rp_code rp_replay_pack(struct rp_session *s, const struct rp_settings *settings,
                            struct rp_result *result, struct rp_err *err)
{
    const char *to = rp_settings_text(settings, "save");

    if (!to)
        return rp_err_set(err, RP_USAGE, "'replay pack' needs --save FILE.tar");
    return pack_to(s, to, settings, result, true, err);
}

enum rp_code rp_replay_pack_to(struct rp_session *s, const char *to,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    return pack_to(s, to, settings, result, false, err);
}
