/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing the manifest of a bundle. Keys that are not known are passed over, so that a
 * later version may add some; paths that lead out of the bundle are refused.
 */
#include "io/escaped.h"
#include "replay/bundle.h"

#include "base/decimal.h"
#include "base/sha256.h"
#include "base/text.h"
#include "io/json_pull.h"

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

struct reader {
    struct rp_json *json;
    struct rp_arena *arena;
    struct rp_err *err;
};

static enum rp_code read_text(struct reader *r, const char **out)
{
    struct rp_json_token v = {0};
    char *copy;

    *out = NULL;
    if (rp_json_value(r->json, &v) == RP_JSON_NULL)
        return RP_OK;
    if (v.kind != RP_JSON_STRING || !rp_json_decode(r->json, &v))
        return rp_err_set(r->err, RP_FORMAT, "expected a string at byte %llu of the manifest",
                          (unsigned long long)rp_json_offset(r->json));
    copy = rp_arena_printf(r->arena, "%.*s", (int)v.len, v.text);
    *out = copy;
    return rp_err_need(copy, r->err, "reading a manifest");
}

static enum rp_code read_int(struct reader *r, int64_t *out)
{
    struct rp_json_token v = {0};

    *out = RP_ABSENT_I64;
    if (rp_json_value(r->json, &v) == RP_JSON_NULL)
        return RP_OK;
    if (v.kind != RP_JSON_NUMBER || !v.is_integer || rp_decimal_parse(v.text, v.len, 0, out))
        return rp_err_set(r->err, RP_FORMAT, "expected an integer at byte %llu of the manifest",
                          (unsigned long long)rp_json_offset(r->json));
    return RP_OK;
}

static enum rp_code read_flag(struct reader *r, bool *out)
{
    struct rp_json_token v = {0};

    *out = rp_json_value(r->json, &v) == RP_JSON_TRUE;
    if (v.kind != RP_JSON_TRUE && v.kind != RP_JSON_FALSE)
        return rp_err_set(r->err, RP_FORMAT, "expected true or false at byte %llu of the manifest",
                          (unsigned long long)rp_json_offset(r->json));
    return RP_OK;
}

static enum rp_code read_array(struct reader *r, struct rp_bundle *b)
{
    struct rp_bundle_array row = {0};
    struct rp_json_token key;

    if (rp_json_value(r->json, &key) != RP_JSON_OBJECT)
        return rp_err_set(r->err, RP_FORMAT, "an array of the manifest is not an object");
    while (rp_json_field(r->json, &key))
        if (rp_json_key_is(&key, "name"))
            RP_TRY(read_text(r, &row.name));
        else if (rp_json_key_is(&key, "type"))
            RP_TRY(read_text(r, &row.type));
        else if (rp_json_key_is(&key, "file"))
            RP_TRY(read_text(r, &row.file));
        else if (rp_json_key_is(&key, "known"))
            RP_TRY(read_flag(r, &row.known));
        else
            rp_json_skip(r->json);
    if (!row.name || !row.type)
        return rp_err_set(r->err, RP_FORMAT, "an array of the manifest has no name or no type");
    return rp_vec_push(&b->arrays, row, r->err);
}

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

static enum rp_code read_file(struct reader *r, struct rp_bundle *b)
{
    struct rp_bundle_file row = {.bytes = RP_ABSENT_I64, .source = RP_NONE};
    struct rp_json_token key;

    if (rp_json_value(r->json, &key) != RP_JSON_OBJECT)
        return rp_err_set(r->err, RP_FORMAT, "a file of the manifest is not an object");
    while (rp_json_field(r->json, &key))
        if (rp_json_key_is(&key, "path"))
            RP_TRY(read_text(r, &row.path));
        else if (rp_json_key_is(&key, "sha256"))
            RP_TRY(read_text(r, &row.sha256));
        else if (rp_json_key_is(&key, "bytes"))
            RP_TRY(read_int(r, &row.bytes));
        else
            rp_json_skip(r->json);
    if (!row.path || !is_inside(row.path) || !is_checksum(row.sha256) || row.bytes < 0)
        return rp_err_set(r->err, RP_FORMAT,
                          "a file of the manifest has no path inside the bundle, checksum or size");
    return rp_bundle_add_file(b, &row, r->err);
}

static enum rp_code read_name(struct reader *r, const char **out)
{
    RP_TRY(read_text(r, out));
    if (!*out || !**out)
        return rp_err_set(r->err, RP_FORMAT, "a feed or fetch of the manifest has no name");
    return RP_OK;
}

static enum rp_code read_feed(struct reader *r, struct rp_bundle *b)
{
    const char *name;

    RP_TRY(read_name(r, &name));
    return rp_vec_push(&b->feeds, name, r->err);
}

static enum rp_code read_fetch(struct reader *r, struct rp_bundle *b)
{
    const char *name;

    RP_TRY(read_name(r, &name));
    return rp_vec_push(&b->fetches, name, r->err);
}

static enum rp_code read_list(struct reader *r, struct rp_bundle *b,
                              enum rp_code (*one)(struct reader *, struct rp_bundle *))
{
    struct rp_json_token v = {0};

    if (rp_json_value(r->json, &v) != RP_JSON_ARRAY)
        return rp_err_set(r->err, RP_FORMAT, "expected a list at byte %llu of the manifest",
                          (unsigned long long)rp_json_offset(r->json));
    while (rp_json_element(r->json))
        RP_TRY(one(r, b));
    return RP_OK;
}

static enum rp_code read_field(struct reader *r, const struct rp_json_token *key,
                               struct rp_bundle *b)
{
    const struct {
        const char *key, **to;
    } texts[] = {{"schema", &b->schema},
                 {"reprise", &b->reprise},
                 {"program", &b->program},
                 {"source", &b->source},
                 {"flags", &b->flags}};
    const struct {
        const char *key;
        int64_t *to;
    } numbers[] = {{"rank", &b->rank},
                   {"partitions", &b->partitions},
                   {"seed", &b->seed},
                   {"variables", &b->variables}};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (rp_json_key_is(key, texts[i].key))
            return read_text(r, texts[i].to);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (rp_json_key_is(key, numbers[i].key))
            return read_int(r, numbers[i].to);
    if (rp_json_key_is(key, "redacted"))
        return read_flag(r, &b->redacted);
    if (rp_json_key_is(key, "arrays"))
        return read_list(r, b, read_array);
    if (rp_json_key_is(key, "files"))
        return read_list(r, b, read_file);
    if (rp_json_key_is(key, "feeds"))
        return read_list(r, b, read_feed);
    if (rp_json_key_is(key, "fetches"))
        return read_list(r, b, read_fetch);
    rp_json_skip(r->json);
    return RP_OK;
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
    struct reader r = {.arena = arena, .err = err};
    struct rp_json_token key;
    struct rp_input *in = NULL;
    enum rp_code code, ended;

    memset(out, 0, sizeof *out);
    out->rank = RP_ABSENT_I64;
    RP_TRY(rp_input_open_memory(RP_BUNDLE_MANIFEST, bytes, n, NULL, &in, err));
    code = rp_json_open(in, NULL, &r.json, err);
    if (code == RP_OK) {
        if (rp_json_value(r.json, &key) == RP_JSON_OBJECT)
            while (code == RP_OK && rp_json_field(r.json, &key))
                code = read_field(&r, &key, out);
        ended = code == RP_OK || rp_json_failed(r.json) ? rp_json_finish(r.json, err) : code;
        code = ended != RP_OK ? ended : manifest_check(out, err);
    }
    rp_json_close(r.json);
    rp_input_close(in);
    return code;
}
