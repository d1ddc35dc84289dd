/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads where an operation comes from: metadata of instructions, and the four tables that newer
 * files begin with. StackFrames writes the number of a frame's parent one too high (the first frame
 * looks like its own parent), which is undone here.
 */
#include "formats/hlo/text.h"

#include <string.h>

static bool is_key(struct rp_slice key, const char *name)
{
    return key.n == strlen(name) && memcmp(key.at, name, key.n) == 0;
}

static enum rp_code text_field(struct rp_hlo_text *r, uint32_t *id)
{
    struct rp_slice text;

    RP_TRY(rp_hlo_text_string(r, &text));
    return rp_string_cached(r->p, &r->cache, text.at, text.n, id, r->err);
}

static enum rp_code number_field(struct rp_hlo_text *r, int32_t *value)
{
    int64_t wide;

    if (!rp_hlo_text_int(r, &wide) || wide > INT32_MAX || wide < INT32_MIN)
        return RP_HLO_FAIL(r, r->at, "expected a 32-bit integer");
    *value = (int32_t)wide;
    return RP_OK;
}

static enum rp_code meta_field(struct rp_hlo_text *r, struct rp_slice key, struct rp_op_meta *m)
{
    struct rp_slice skipped;
    int32_t frame;

    if (is_key(key, "op_name"))
        return text_field(r, &m->op_name);
    if (is_key(key, "op_type"))
        return text_field(r, &m->op_type);
    if (is_key(key, "source_file"))
        return text_field(r, &m->file);
    if (is_key(key, "scheduling_name"))
        return text_field(r, &m->scheduling_name);
    if (is_key(key, "deduplicated_name"))
        return text_field(r, &m->deduplicated_name);
    if (is_key(key, "source_line"))
        return number_field(r, &m->line);
    if (is_key(key, "source_end_line"))
        return number_field(r, &m->end_line);
    if (is_key(key, "source_column"))
        return number_field(r, &m->column);
    if (is_key(key, "source_end_column"))
        return number_field(r, &m->end_column);
    if (!is_key(key, "stack_frame_id"))
        return rp_hlo_text_value(r, &skipped);
    RP_TRY(number_field(r, &frame));
    m->frame = frame > 0 ? (uint32_t)frame : 0;
    return RP_OK;
}

enum rp_code rp_hlo_text_metadata(struct rp_hlo_text *r, struct rp_slice text, uint32_t *id)
{
    const char *behind = r->at;
    struct rp_op_meta meta = {0};

    r->at = text.at;
    if (*text.at != '{' || text.at[text.n - 1] != '}')
        return RP_HLO_FAIL(r, text.at, "metadata without braces");
    r->at++;
    for (;;) {
        rp_hlo_text_space(r);
        if (rp_hlo_text_peek(r) == ',')
            r->at++;
        rp_hlo_text_space(r);
        if (r->at >= behind - 1)
            break;
        struct rp_slice key = rp_hlo_text_name(r);
        if (!key.n || rp_hlo_text_peek(r) != '=')
            return RP_HLO_FAIL(r, r->at, "expected a field of the metadata");
        r->at++;
        RP_TRY(meta_field(r, key, &meta));
    }
    r->at = behind;
    *id = (uint32_t)r->p->metas.n;
    return rp_vec_push(&r->p->metas, meta, r->err);
}

/* ---- the tables ---- */

typedef RP_VEC(uint32_t) string_list;

/* Reads rows like "1 \"model.py\""; numbers count from 1. */
static enum rp_code string_rows(struct rp_hlo_text *r, string_list *list)
{
    int64_t number;
    uint32_t id;

    for (;;) {
        rp_hlo_text_space(r);
        if (!rp_hlo_text_int(r, &number))
            return RP_OK;
        if (number != (int64_t)list->n + 1)
            return RP_HLO_FAIL(r, r->at, "expected row %zu", list->n + 1);
        rp_hlo_text_space(r);
        RP_TRY(text_field(r, &id));
        RP_TRY(rp_vec_push(list, id, r->err));
    }
}

/* Reads the fields of one row, "{file_name_id=1 line=19}", in the order of `keys`. */
static enum rp_code row_fields(struct rp_hlo_text *r, const char *const *keys, int32_t *values)
{
    RP_TRY(rp_hlo_text_expect(r, '{', "after the number of a row"));
    while (!rp_hlo_text_take(r, '}')) {
        struct rp_slice key = rp_hlo_text_name(r);
        int32_t value;

        if (!key.n || rp_hlo_text_peek(r) != '=')
            return RP_HLO_FAIL(r, r->at, "expected a field of the row");
        r->at++;
        RP_TRY(number_field(r, &value));
        for (size_t i = 0; keys[i]; i++)
            if (is_key(key, keys[i]))
                values[i] = value;
    }
    return RP_OK;
}

static uint32_t string_of_row(const string_list *list, int32_t number)
{
    return number > 0 && (size_t)number <= list->n ? list->at[number - 1] : 0;
}

static enum rp_code location_rows(struct rp_hlo_text *r, const string_list *files,
                                  const string_list *functions)
{
    static const char *const keys[] = {"file_name_id", "function_name_id", "line", "end_line",
                                       "column",       "end_column",       NULL};
    int64_t number;

    for (;;) {
        int32_t v[6] = {0};

        rp_hlo_text_space(r);
        if (!rp_hlo_text_int(r, &number))
            return RP_OK;
        RP_TRY(row_fields(r, keys, v));
        struct rp_location at = {
            string_of_row(files, v[0]), string_of_row(functions, v[1]), v[2], v[3], v[4], v[5]};
        RP_TRY(rp_vec_push(&r->p->locations, at, r->err));
    }
}

static enum rp_code frame_rows(struct rp_hlo_text *r)
{
    static const char *const keys[] = {"file_location_id", "parent_frame_id", NULL};
    int64_t number;

    for (;;) {
        int32_t v[2] = {0};
        struct rp_frame frame;

        rp_hlo_text_space(r);
        const char *where = r->at;
        if (!rp_hlo_text_int(r, &number))
            return RP_OK;
        RP_TRY(row_fields(r, keys, v));
        if (v[0] < 1 || (size_t)v[0] > r->p->locations.n)
            return RP_HLO_FAIL(r, where, "a frame with an undefined location");
        frame.location = (uint32_t)v[0] - 1;
        frame.parent = v[1] > 1 && v[1] - 1 <= (int32_t)r->p->frames.n ? (uint32_t)v[1] - 1 : 0;
        RP_TRY(rp_vec_push(&r->p->frames, frame, r->err));
    }
}

enum rp_code rp_hlo_text_frames(struct rp_hlo_text *r)
{
    string_list files = {0}, functions = {0};
    enum rp_code code = RP_OK;

    if (rp_hlo_text_heading(r, "FileNames"))
        code = string_rows(r, &files);
    if (code == RP_OK && rp_hlo_text_heading(r, "FunctionNames"))
        code = string_rows(r, &functions);
    if (code == RP_OK && rp_hlo_text_heading(r, "FileLocations"))
        code = location_rows(r, &files, &functions);
    if (code == RP_OK && rp_hlo_text_heading(r, "StackFrames"))
        code = frame_rows(r);
    rp_vec_release(&files);
    rp_vec_release(&functions);
    return code;
}
