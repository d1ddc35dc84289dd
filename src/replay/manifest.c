/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes the manifest of a bundle. Unknown keys are ignored, so that a later version may
 * add some; paths that lead out of the bundle are refused.
 */
#include "io/escaped.h"
#include "replay/bundle.h"

#include "base/sha256.h"
#include "base/text.h"
#include "io/json_tree.h"

#include <reprise/result.h>
#include <string.h>

void rp_bundle_release(struct rp_bundle *b)
{
    rp_vec_release(&b->arrays);
    rp_vec_release(&b->files);
    rp_names_release(&b->paths);
    rp_vec_release(&b->feeds);
    rp_vec_release(&b->fetches);
}

enum rp_code rp_bundle_add_file(struct rp_bundle *b, const struct rp_bundle_file *file,
                                struct rp_err *err)
{
    RP_TRY(rp_names_add(&b->paths, file->path, (uint32_t)b->files.n, err));
    return rp_vec_push(&b->files, *file, err);
}

uint32_t rp_bundle_find(const struct rp_bundle *b, const char *path)
{
    return rp_names_find(&b->paths, path);
}

/* ---- writing ---- */

static void put_field(struct rp_out *out, const char *lead, const char *key, const char *text)
{
    rp_out_printf(out, "%s\"%s\": ", lead, key);
    rp_out_escaped(out, RP_IN_JSON, text);
}

static void put_names(struct rp_out *out, const char *key, const char *const *names, size_t n)
{
    rp_out_printf(out, ",\n  \"%s\": [", key);
    for (size_t i = 0; i < n; i++) {
        rp_out_text(out, i ? ", " : "");
        rp_out_escaped(out, RP_IN_JSON, names[i]);
    }
    rp_out_char(out, ']');
}

void rp_bundle_write(const struct rp_bundle *b, struct rp_out *out)
{
    put_field(out, "{\n  ", "schema", RP_BUNDLE_SCHEMA);
    put_field(out, ",\n  ", "reprise", b->reprise);
    put_field(out, ",\n  ", "program", b->program);
    put_field(out, ",\n  ", "source", b->source);
    put_field(out, ",\n  ", "flags", b->flags);
    if (b->rank == RP_ABSENT_I64)
        rp_out_text(out, ",\n  \"rank\": null");
    else
        rp_out_printf(out, ",\n  \"rank\": %lld", (long long)b->rank);
    rp_out_printf(out, ",\n  \"partitions\": %lld,\n  \"seed\": %lld,\n  \"redacted\": %s",
                  (long long)b->partitions, (long long)b->seed, b->redacted ? "true" : "false");
    if (b->fetches.n) {
        put_names(out, "feeds", b->feeds.at, b->feeds.n);
        put_names(out, "fetches", b->fetches.at, b->fetches.n);
        rp_out_printf(out, ",\n  \"variables\": %lld", (long long)b->variables);
    }
    rp_out_text(out, ",\n  \"arrays\": [");
    for (size_t i = 0; i < b->arrays.n; i++) {
        put_field(out, i ? ",\n    {" : "\n    {", "name", b->arrays.at[i].name);
        put_field(out, ", ", "type", b->arrays.at[i].type);
        put_field(out, ", ", "file", b->arrays.at[i].file);
        rp_out_text(out, b->arrays.at[i].known ? ", \"known\": true}" : "}");
    }
    rp_out_text(out, "],\n  \"files\": [");
    for (size_t i = 0; i < b->files.n; i++) {
        put_field(out, i ? ",\n    {" : "\n    {", "path", b->files.at[i].path);
        put_field(out, ", ", "sha256", b->files.at[i].sha256);
        rp_out_printf(out, ", \"bytes\": %lld}", (long long)b->files.at[i].bytes);
    }
    rp_out_text(out, "]\n}\n");
}

/* ---- reading ---- */

static bool is_inside(const char *path)
{
    return path[0] && path[0] != '/' && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
           !strstr(path, "/../") && !strchr(path, '\\');
}

/* 64 hexadecimal digits */
static bool is_checksum(const char *text)
{
    size_t n = 0;

    while (text && rp_hex_digit(text[n]) >= 0)
        n++;
    return n == RP_SHA256_TEXT - 1 && !text[n];
}

#define WHERE "the manifest"

static const struct rp_json_row array_rows[] = {RP_JSON_ROW(struct rp_bundle_array, name, STRING),
                                                RP_JSON_ROW(struct rp_bundle_array, type, STRING),
                                                RP_JSON_ROW(struct rp_bundle_array, file, STRING),
                                                RP_JSON_ROW(struct rp_bundle_array, known, TRUE),
                                                RP_JSON_ROWS_END};

static const struct rp_json_row file_rows[] = {RP_JSON_ROW(struct rp_bundle_file, path, STRING),
                                               RP_JSON_ROW(struct rp_bundle_file, sha256, STRING),
                                               RP_JSON_ROW(struct rp_bundle_file, bytes, NUMBER),
                                               RP_JSON_ROWS_END};

static const struct rp_json_row bundle_rows[] = {RP_JSON_ROW(struct rp_bundle, schema, STRING),
                                                 RP_JSON_ROW(struct rp_bundle, reprise, STRING),
                                                 RP_JSON_ROW(struct rp_bundle, program, STRING),
                                                 RP_JSON_ROW(struct rp_bundle, source, STRING),
                                                 RP_JSON_ROW(struct rp_bundle, flags, STRING),
                                                 RP_JSON_ROW(struct rp_bundle, rank, NUMBER),
                                                 RP_JSON_ROW(struct rp_bundle, partitions, NUMBER),
                                                 RP_JSON_ROW(struct rp_bundle, seed, NUMBER),
                                                 RP_JSON_ROW(struct rp_bundle, variables, NUMBER),
                                                 RP_JSON_ROW(struct rp_bundle, redacted, TRUE),
                                                 RP_JSON_ROWS_END};

struct lists {
    const struct rp_json_node *arrays, *files, *feeds, *fetches;
};

static const struct rp_json_row list_rows[] = {
    RP_JSON_ROW(struct lists, arrays, ARRAY), RP_JSON_ROW(struct lists, files, ARRAY),
    RP_JSON_ROW(struct lists, feeds, ARRAY), RP_JSON_ROW(struct lists, fetches, ARRAY),
    RP_JSON_ROWS_END};

static enum rp_code add_name(const struct rp_json_node *item, rp_bundle_names *to,
                             struct rp_err *err)
{
    if (!rp_json_text(item) || !item->len)
        return rp_err_set(err, RP_FORMAT, "a feed or fetch of the manifest has no name");
    return rp_vec_push(to, item->text, err);
}

static enum rp_code manifest_check(const struct rp_bundle *b, struct rp_err *err)
{
    if (!b->schema || strncmp(b->schema, "reprise.bundle/", 15) != 0)
        return rp_err_set(err, RP_FORMAT, "the manifest is not that of a bundle");
    if (strcmp(b->schema, RP_BUNDLE_SCHEMA) != 0)
        return rp_err_set(err, RP_UNSUPPORTED, "unsupported bundle version '%.40s'; supported: %s",
                          b->schema + 15, &RP_BUNDLE_SCHEMA[15]);
    if (rp_bundle_find(b, b->program) == RP_NONE)
        return rp_err_set(err, RP_FORMAT, "the manifest names no program among its files");
    for (size_t i = 0; i < b->arrays.n; i++)
        if (b->arrays.at[i].file && rp_bundle_find(b, b->arrays.at[i].file) == RP_NONE)
            return rp_err_set(err, RP_FORMAT,
                              "the file of array '%.40s' is not listed in the manifest",
                              b->arrays.at[i].name);
    if (b->partitions < 1 || b->partitions > 4096 || b->seed < 0)
        return rp_err_set(err, RP_FORMAT, "invalid number of partitions or seed in the manifest");
    if (b->variables < 0 || (size_t)b->variables > b->feeds.n)
        return rp_err_set(err, RP_FORMAT, "the manifest has more variables than feeds");
    return RP_OK;
}

enum rp_code rp_bundle_parse(const void *bytes, size_t n, struct rp_arena *arena,
                             struct rp_bundle *out, struct rp_err *err)
{
    static const struct rp_json_node none = {0};
    struct lists lists = {&none, &none, &none, &none};
    const struct rp_json_node *root;

    memset(out, 0, sizeof *out);
    out->rank = RP_ABSENT_I64;
    RP_TRY(rp_json_tree_parse(RP_BUNDLE_MANIFEST, bytes, n, arena, &root, err));
    RP_TRY(rp_json_fill(root, bundle_rows, WHERE, out, err));
    RP_TRY(rp_json_fill(root, list_rows, WHERE, &lists, err));
    RP_JSON_EACH(item, lists.arrays)
    {
        struct rp_bundle_array row = {0};

        RP_TRY(rp_json_fill(item, array_rows, WHERE, &row, err));
        if (!row.name || !row.type)
            return rp_err_set(err, RP_FORMAT, "an array of the manifest has no name or no type");
        RP_TRY(rp_vec_push(&out->arrays, row, err));
    }
    RP_JSON_EACH(item, lists.files)
    {
        struct rp_bundle_file row = {.bytes = RP_ABSENT_I64, .source = RP_NONE};

        RP_TRY(rp_json_fill(item, file_rows, WHERE, &row, err));
        if (!row.path || !is_inside(row.path) || !is_checksum(row.sha256) || row.bytes < 0)
            return rp_err_set(
                err, RP_FORMAT,
                "a file of the manifest has no path inside the bundle, checksum or size");
        RP_TRY(rp_bundle_add_file(out, &row, err));
    }
    RP_JSON_EACH(item, lists.feeds)
    RP_TRY(add_name(item, &out->feeds, err));
    RP_JSON_EACH(item, lists.fetches)
    RP_TRY(add_name(item, &out->fetches, err));
    return manifest_check(out, err);
}
