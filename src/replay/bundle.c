/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads bundles. The members of the tar are the sources of a dataset already (sources.h); the
 * manifest says which of them is what. Before a member is used, its checksum is verified, so a
 * damaged bundle never gives a result.
 */
#include "replay/bundle.h"

#include "base/line.h"
#include "base/sha256.h"
#include "replay/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool rp_replay_is_bundle(const struct rp_dataset *dataset, size_t *manifest)
{
    for (size_t i = 0; dataset && i < rp_sources_count(dataset->sources); i++) {
        const struct rp_source *source = rp_sources_borrow(dataset->sources, i);

        if (source->member && !strcmp(source->member, RP_BUNDLE_MANIFEST) &&
            !strcmp(source->path, dataset->given)) {
            *manifest = i;
            return true;
        }
    }
    return false;
}

/* Finds the sources of the manifest's files. */
static enum rp_code find_sources(const struct rp_dataset *dataset, struct rp_bundle *b,
                                 struct rp_err *err)
{
    struct rp_names members = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < rp_sources_count(dataset->sources) && code == RP_OK; i++) {
        const struct rp_source *source = rp_sources_borrow(dataset->sources, i);

        if (source->member)
            code = rp_names_add(&members, source->member, (uint32_t)i, err);
    }
    for (size_t i = 0; i < b->files.n; i++)
        b->files.at[i].source = rp_names_find(&members, b->files.at[i].path);
    rp_names_release(&members);
    return code;
}

enum rp_code rp_replay_open_bundle(const struct rp_dataset *dataset, size_t manifest,
                                   struct rp_arena *arena, struct rp_opened_bundle *out,
                                   struct rp_err *err)
{
    struct rp_input *in = NULL;
    const uint8_t *bytes;
    size_t n;

    memset(out, 0, sizeof *out);
    RP_TRY(rp_source_open(dataset->sources, manifest, &in, err));
    enum rp_code code = rp_input_slurp(in, &bytes, &n, err);
    if (code == RP_OK)
        code = rp_bundle_parse(bytes, n, arena, &out->bundle, err);
    rp_input_close(in);
    if (code != RP_OK)
        return rp_err_prefix(err, code, "'%s'", dataset->given);
    RP_TRY(find_sources(dataset, &out->bundle, err));
    out->program = out->bundle.files.at[rp_bundle_find(&out->bundle, out->bundle.program)].source;
    if (out->program == RP_NONE)
        return rp_err_set(err, RP_FORMAT, "'%s': member '%s' is missing", dataset->given,
                          out->bundle.program);
    return RP_OK;
}

/* ---- members ---- */

typedef enum rp_code use_fn(void *user, const uint8_t *bytes, size_t n, struct rp_err *err);

/* Passes the bytes of a file to `use` if they are those of the manifest. */
static enum rp_code with_member(const struct rp_dataset *dataset, const struct rp_bundle *b,
                                uint32_t number, use_fn *use, void *user, struct rp_err *err)
{
    const struct rp_bundle_file *file = &b->files.at[number];
    char text[RP_SHA256_TEXT];
    struct rp_sha256 sha;
    RP_SCOPED(rp_replay_close_input) struct rp_input *in = NULL;
    const uint8_t *bytes;
    size_t n;

    if (file->source == RP_NONE)
        return rp_err_set(err, RP_FORMAT, "'%s': member '%s' is missing", dataset->given,
                          file->path);
    RP_TRY(rp_source_open(dataset->sources, file->source, &in, err));
    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    rp_sha256_begin(&sha);
    rp_sha256_add(&sha, bytes, n);
    rp_sha256_text(&sha, text);
    if (n != (uint64_t)file->bytes || strcmp(text, file->sha256) != 0)
        return rp_err_set(err, RP_FORMAT,
                          "'%s': member '%s' differs from its manifest: %zu bytes with SHA-256 "
                          "%.16s..., not %lld with %.16s...",
                          dataset->given, file->path, n, text, (long long)file->bytes,
                          file->sha256);
    return use ? use(user, bytes, n, err) : RP_OK;
}

static enum rp_code parse_array(void *user, const uint8_t *bytes, size_t n, struct rp_err *err)
{
    return rp_npy_parse(bytes, n, user, err);
}

static enum rp_code load_arrays(const struct rp_dataset *dataset, const struct rp_bundle *b,
                                bool outputs, struct rp_arrays *to, struct rp_err *err)
{
    RP_FREED struct rp_tensor **known = calloc(b->files.n + 1, sizeof *known); /* by file */

    RP_TRY(rp_err_need(known, err, "reading a bundle"));
    for (size_t i = 0; i < b->arrays.n; i++) {
        const struct rp_bundle_array *row = &b->arrays.at[i];

        if ((strstr(row->name, "out") != NULL) == outputs && row->file) {
            /* A file that several arrays name is read once, and they share its tensor. */
            uint32_t file = rp_bundle_find(b, row->file);
            struct rp_tensor *t = known[file] ? rp_tensor_keep(known[file]) : NULL;

            if (!t)
                RP_TRY(with_member(dataset, b, file, parse_array, &t, err));
            RP_TRY(rp_arrays_add(to, t, err, "%s", row->name));
            known[file] = t;
        }
    }
    return RP_OK;
}

enum rp_code rp_replay_check_program(const struct rp_dataset *dataset,
                                     const struct rp_opened_bundle *bundle, struct rp_err *err)
{
    const struct rp_bundle *b = &bundle->bundle;

    return with_member(dataset, b, rp_bundle_find(b, b->program), NULL, NULL, err);
}

enum rp_code rp_replay_load_bundle(const struct rp_dataset *dataset,
                                   const struct rp_opened_bundle *bundle, struct rp_session *s,
                                   bool inputs, bool expected, bool fetches, struct rp_err *err)
{
    const struct rp_bundle *b = &bundle->bundle;

    s->bundle = true;
    s->bundle_seed = b->seed;
    s->bundle_partitions = b->partitions;
    if (s->graph)
        RP_TRY(rp_replay_graph_ports(s, b, fetches, err));
    if (inputs)
        RP_TRY(load_arrays(dataset, b, false, &s->inputs, err));
    return expected ? load_arrays(dataset, b, true, &s->expected, err) : RP_OK;
}

/* ---- info ---- */

static enum rp_code list_members(const struct rp_dataset *dataset, const struct rp_bundle *b,
                                 struct rp_result *result, struct rp_err *err)
{
    struct rp_replay *root = result->root;
    struct rp_arena_line *holds = RP_ARENA_NEW(&result->arena, struct rp_arena_line, b->files.n);

    root->files = RP_ARENA_NEW(&result->arena, struct rp_replay_file, b->files.n + 1);
    RP_TRY(rp_err_need(root->files && holds, err, "listing a bundle"));
    for (size_t i = 0; i < b->arrays.n; i++) {
        const struct rp_bundle_array *array = &b->arrays.at[i];
        uint32_t file = rp_bundle_find(b, array->file);

        if (file == RP_NONE)
            continue;
        holds[file].arena = &result->arena;
        rp_arena_addf(&holds[file], "%s%s", holds[file].n ? ", " : "", array->name);
        root->files[file].type = array->type;
    }
    for (size_t i = 0; i < b->files.n; i++) {
        const struct rp_bundle_file *file = &b->files.at[i];
        struct rp_replay_file *row = &root->files[root->nfiles++];
        struct rp_err why = RP_ERR_INIT;

        *row = (struct rp_replay_file){file->path,   holds[i].text, row->type,
                                       file->sha256, file->bytes,   true};
        if (!row->holds)
            row->holds = !strcmp(file->path, b->program) ? "program" : "";
        row->ok = with_member(dataset, b, (uint32_t)i, NULL, NULL, &why) == RP_OK;
        root->ok &= row->ok;
    }
    return RP_OK;
}

static enum rp_code open_given(const struct rp_dataset *dataset, struct rp_arena *arena,
                               struct rp_opened_bundle *out, struct rp_err *err)
{
    size_t manifest;

    if (!dataset)
        return rp_err_set(err, RP_USAGE, "a bundle is needed: 'reprise replay pack' makes one");
    if (!rp_replay_is_bundle(dataset, &manifest))
        return rp_err_set(err, RP_FORMAT, "'%s' is not a bundle: it has no %s", dataset->given,
                          RP_BUNDLE_MANIFEST);
    return rp_replay_open_bundle(dataset, manifest, arena, out, err);
}

static const char *describe_bundle(struct rp_arena *arena, const struct rp_bundle *b)
{
    size_t in = 0;

    for (size_t i = 0; i < b->arrays.n; i++)
        in += strstr(b->arrays.at[i].name, "out") == NULL;
    if (b->redacted)
        return rp_arena_printf(arena, "%zu, redacted: synthetic, seed %lld", in,
                               (long long)b->seed);
    return rp_arena_printf(arena, "%zu, in the bundle", in);
}

enum rp_code rp_replay_bundle_info(const struct rp_dataset *dataset, struct rp_result *result,
                                   struct rp_err *err)
{
    struct rp_replay *root = result->root;
    RP_SCOPED(rp_replay_close_bundle) struct rp_opened_bundle o = {0};

    RP_TRY(open_given(dataset, &result->arena, &o, err));
    root->program = o.bundle.source ? o.bundle.source : o.bundle.program;
    root->format = o.bundle.schema;
    root->packed_by = o.bundle.reprise;
    root->flags = o.bundle.flags;
    root->rank = o.bundle.rank;
    root->partitions = o.bundle.partitions;
    root->inputs = describe_bundle(&result->arena, &o.bundle);
    root->ok = true;
    RP_TRY(list_members(dataset, &o.bundle, result, err));
    result->answer = root->ok ? 0 : RP_ANSWER_NO;
    return RP_OK;
}

/* ---- unpack ---- */

struct target {
    const char *path;
};

static enum rp_code write_file(void *user, const uint8_t *bytes, size_t n, struct rp_err *err)
{
    const struct target *to = user;
    struct rp_out *out;

    RP_TRY(rp_out_open(to->path, &out, err));
    rp_out_write(out, bytes, n);
    return rp_out_close(out, err);
}

static enum rp_code unpack_to(const struct rp_dataset *dataset, const struct rp_bundle *b,
                              const char *folder, struct rp_arena *arena, struct rp_err *err)
{
    struct target program = {rp_arena_printf(arena, "%s/%s", folder, b->program)};
    const char *io = rp_arena_printf(arena, "%s/io.npz", folder);
    struct rp_out *out;

    RP_TRY(rp_err_need(program.path && io, err, "unpacking"));
    if (strchr(b->program, '/'))
        return rp_err_set(err, RP_FORMAT, "'%s': the program '%s' is inside a folder",
                          dataset->given, b->program);
    if (mkdir(folder, 0777) && errno != EEXIST)
        return rp_err_set(err, RP_IO, "'%s': %s", folder, strerror(errno));
    RP_TRY(with_member(dataset, b, rp_bundle_find(b, b->program), write_file, &program, err));
    /* Writes arrays as one .npz with both inputs and outputs, which --inputs and --expect
       accept. */
    RP_SCOPED(rp_arrays_release) struct rp_arrays arrays = {0};
    RP_TRY(load_arrays(dataset, b, false, &arrays, err));
    RP_TRY(load_arrays(dataset, b, true, &arrays, err));
    if (arrays.list.n)
        RP_TRY(rp_arrays_write(io, arrays.list.at, arrays.list.n, err));
    RP_TRY(rp_out_open(rp_arena_printf(arena, "%s/" RP_BUNDLE_MANIFEST, folder), &out, err));
    rp_bundle_write(b, out);
    return rp_out_close(out, err);
}

enum rp_code rp_replay_unpack(const struct rp_dataset *dataset, const struct rp_settings *settings,
                              struct rp_result *result, struct rp_err *err)
{
    const char *folder = rp_settings_text(settings, "save");
    RP_SCOPED(rp_replay_close_bundle) struct rp_opened_bundle o = {0};

    if (!folder)
        return rp_err_set(err, RP_USAGE, "'replay unpack' needs --save FOLDER");
    RP_TRY(open_given(dataset, &result->arena, &o, err));
    RP_TRY(unpack_to(dataset, &o.bundle, folder, &result->arena, err));
    return rp_replay_bundle_info(dataset, result, err);
}
