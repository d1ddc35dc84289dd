/* SPDX-License-Identifier: Apache-2.0 */
/* The messages are FlatBuffers of Schema.fbs, Message.fbs and File.fbs of Apache Arrow; slots below
   are numbered as their fields are there. */
#include "tables/ipc.h"

#include "base/each.h"
#include "base/strtab.h"
#include "io/flat_write.h"
#include "io/output.h"

#include <stdlib.h>

#define VERSION_5 4 /* MetadataVersion.V5 */
#define ALIGN     8
static const char magic[8] = "ARROW1\0";

enum header { SCHEMA = 1, DICTIONARY_BATCH, RECORD_BATCH };

/* The way in which a column is written. */
struct kind {
    char format;   /* of the C data interface */
    uint8_t type;  /* of the union Type */
    uint8_t bits;  /* of a value; for texts of an offset */
    bool has_sign; /* of an integer */
};
enum type { TYPE_INT = 2, TYPE_FLOAT = 3, TYPE_BOOL = 6, TYPE_LARGE_UTF8 = 20 };
static const struct kind kinds[] = {{'c', TYPE_INT, 8, true},     {'i', TYPE_INT, 32, true},
                                    {'I', TYPE_INT, 32, false},   {'l', TYPE_INT, 64, true},
                                    {'g', TYPE_FLOAT, 64, 0},     {'b', TYPE_BOOL, 1, 0},
                                    {'U', TYPE_LARGE_UTF8, 64, 0}};
static const struct kind index_kind = {'i', TYPE_INT, 32, true};

/* The structs of the format. */
struct block {
    int64_t offset;
    int32_t head_bytes, unused;
    int64_t body_bytes;
};
struct node {
    int64_t length, nulls;
};
struct place {
    int64_t offset, length;
};

struct ipc {
    struct rp_out *out;
    struct ArrowSchema schema;
    size_t ncolumns;
    RP_VEC(struct ArrowArray) batches;
    struct rp_strtab *texts; /* by column: the texts of its dictionary */
    RP_VEC(struct block) dictionary_blocks;
    RP_VEC(struct block) batch_blocks;

    /* for the message that is being written */
    struct rp_flat flat;
    struct rp_arena arena;
    RP_VEC(struct node) nodes;
    RP_VEC(struct place) places;
    RP_VEC(const void *) buffers;
    int64_t body_bytes;
};

static const struct kind *find_kind(const struct ArrowSchema *s)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (s->format[0] == kinds[i].format && !s->format[1])
            return &kinds[i];
    return NULL;
}

/* ------------------------------------------------------------------ schema */

static uint32_t put_int(struct rp_flat *f, const struct kind *k)
{
    rp_flat_begin(f);
    rp_flat_add(f, 0, k->bits, sizeof(int32_t));
    rp_flat_add(f, 1, k->has_sign, sizeof(uint8_t));
    return rp_flat_end(f);
}

static uint32_t put_type(struct rp_flat *f, const struct kind *k)
{
    if (k->type == TYPE_INT)
        return put_int(f, k);
    rp_flat_begin(f);
    if (k->type == TYPE_FLOAT)
        rp_flat_add(f, 0, 2, sizeof(int16_t)); /* Precision.DOUBLE */
    return rp_flat_end(f);
}

static uint32_t put_encoding(struct rp_flat *f, int64_t id)
{
    uint32_t index = put_int(f, &index_kind);

    rp_flat_begin(f);
    rp_flat_add(f, 0, id, sizeof id);
    rp_flat_add_ref(f, 1, index);
    return rp_flat_end(f);
}

static const char *take_counted(const char *at, int32_t *n)
{
    memcpy(n, at, sizeof *n);
    return at + sizeof *n;
}

/* Writes keys and values of a field; see the C data interface. */
static uint32_t put_metadata(struct ipc *w, const char *metadata)
{
    struct rp_flat *f = &w->flat;
    int32_t n, len;
    const char *at = take_counted(metadata, &n);
    uint32_t *pairs = RP_ARENA_NEW(&w->arena, uint32_t, (size_t)n + 1);

    for (int32_t i = 0; pairs && i < n; i++) {
        uint32_t texts[2];

        for (size_t k = 0; k < 2; k++) {
            at = take_counted(at, &len);
            texts[k] = rp_flat_text(f, at, (size_t)len);
            at += len;
        }
        rp_flat_begin(f);
        rp_flat_add_ref(f, 0, texts[0]);
        rp_flat_add_ref(f, 1, texts[1]);
        pairs[i] = rp_flat_end(f);
    }
    return rp_flat_refs(f, pairs, pairs ? (size_t)n : 0);
}

static uint32_t put_field(struct ipc *w, const struct ArrowSchema *s, int64_t id)
{
    struct rp_flat *f = &w->flat;
    const struct kind *k = find_kind(s->dictionary ? s->dictionary : s);
    uint32_t name = rp_flat_text(f, s->name, strlen(s->name));
    uint32_t type = put_type(f, k);
    uint32_t encoding = s->dictionary ? put_encoding(f, id) : 0;
    uint32_t children = rp_flat_refs(f, NULL, 0);
    uint32_t metadata = s->metadata ? put_metadata(w, s->metadata) : 0;

    rp_flat_begin(f);
    rp_flat_add_ref(f, 0, name);
    rp_flat_add_ref(f, 3, type);
    if (encoding)
        rp_flat_add_ref(f, 4, encoding);
    rp_flat_add_ref(f, 5, children);
    if (metadata)
        rp_flat_add_ref(f, 6, metadata);
    rp_flat_add(f, 1, (s->flags & ARROW_FLAG_NULLABLE) != 0, sizeof(uint8_t));
    rp_flat_add(f, 2, k->type, sizeof(uint8_t));
    return rp_flat_end(f);
}

static uint32_t put_schema(struct ipc *w)
{
    uint32_t *fields = RP_ARENA_NEW(&w->arena, uint32_t, w->ncolumns + 1);

    for (size_t i = 0; fields && i < w->ncolumns; i++)
        fields[i] = put_field(w, w->schema.children[i], (int64_t)i);
    uint32_t list = rp_flat_refs(&w->flat, fields, fields ? w->ncolumns : 0);
    rp_flat_begin(&w->flat);
    rp_flat_add_ref(&w->flat, 1, list);
    rp_flat_add(&w->flat, 0, 0, sizeof(int16_t)); /* Endianness.Little */
    return rp_flat_end(&w->flat);
}

/* ------------------------------------------------------------------ messages */

static void begin_message(struct ipc *w)
{
    rp_flat_rewind(&w->flat);
    rp_arena_release(&w->arena);
    w->arena = (struct rp_arena)RP_ARENA_INIT;
    w->nodes.n = w->places.n = w->buffers.n = 0;
    w->body_bytes = 0;
}

/* Writes marks, length and description of a message, then its buffers. */
static enum rp_code write_message(struct ipc *w, enum header type, uint32_t header,
                                  struct block *block, struct rp_err *err)
{
    struct rp_flat *f = &w->flat;
    const void *bytes;
    int32_t prefix[2] = {-1};
    size_t n;

    rp_flat_begin(f);
    rp_flat_add(f, 3, w->body_bytes, sizeof w->body_bytes);
    rp_flat_add_ref(f, 2, header);
    rp_flat_add(f, 0, VERSION_5, sizeof(int16_t));
    rp_flat_add(f, 1, type, sizeof(uint8_t));
    rp_flat_finish(f, rp_flat_end(f));
    RP_TRY(rp_flat_written(f, &bytes, &n, err));
    RP_TRY(rp_arena_check(&w->arena, "writing a table", err));
    prefix[1] = (int32_t)n;
    *block = (struct block){.offset = (int64_t)rp_out_position(w->out),
                            .head_bytes = (int32_t)(n + sizeof prefix),
                            .body_bytes = w->body_bytes};
    rp_out_write(w->out, prefix, sizeof prefix);
    rp_out_write(w->out, bytes, n);
    for (size_t i = 0; i < w->places.n; i++) {
        rp_out_write(w->out, w->buffers.at[i], (size_t)w->places.at[i].length);
        static const char zeros[ALIGN];
        rp_out_write(w->out, zeros, (0 - (size_t)rp_out_position(w->out)) % ALIGN);
    }
    return RP_OK;
}

static enum rp_code add_buffer(struct ipc *w, const void *buffer, int64_t length,
                               struct rp_err *err)
{
    struct place place = {w->body_bytes, length};

    w->body_bytes += (length + ALIGN - 1) / ALIGN * ALIGN;
    RP_TRY(rp_vec_push(&w->buffers, buffer, err));
    return rp_vec_push(&w->places, place, err);
}

static enum rp_code add_column(struct ipc *w, const struct kind *k, const struct ArrowArray *a,
                               const void *values, struct rp_err *err)
{
    struct node node = {a->length, a->null_count};
    bool nulls = a->null_count != 0 && a->buffers[0];
    const int64_t *ends = values;

    RP_TRY(rp_vec_push(&w->nodes, node, err));
    RP_TRY(add_buffer(w, a->buffers[0], nulls ? (a->length + 7) / 8 : 0, err));
    if (k->type != TYPE_LARGE_UTF8)
        return add_buffer(w, values, (a->length * k->bits + 7) / 8, err);
    RP_TRY(add_buffer(w, ends, (a->length + 1) * (int64_t)sizeof *ends, err));
    return add_buffer(w, a->buffers[2], ends[a->length], err);
}

/* Writes the table RecordBatch of the columns that were added. */
static uint32_t put_batch(struct ipc *w, int64_t length)
{
    uint32_t nodes = rp_flat_structs(&w->flat, w->nodes.at, w->nodes.n, sizeof *w->nodes.at);
    uint32_t places = rp_flat_structs(&w->flat, w->places.at, w->places.n, sizeof *w->places.at);

    rp_flat_begin(&w->flat);
    rp_flat_add(&w->flat, 0, length, sizeof length);
    rp_flat_add_ref(&w->flat, 1, nodes);
    rp_flat_add_ref(&w->flat, 2, places);
    return rp_flat_end(&w->flat);
}

/* ------------------------------------------------------------------ dictionaries */

/* Renumbers the column for the dictionary of the file, in the arena. */
static enum rp_code map_column(struct ipc *w, size_t column, const struct ArrowArray *a,
                               const uint32_t **out, struct rp_err *err)
{
    const struct ArrowArray *d = a->dictionary;
    const uint8_t *valid = a->null_count ? a->buffers[0] : NULL;
    bool narrow = w->schema.children[column]->format[0] == 'c';
    uint32_t *map = RP_ARENA_NEW(&w->arena, uint32_t, (size_t)d->length + 1);
    uint32_t *rows = RP_ARENA_NEW(&w->arena, uint32_t, (size_t)a->length + 1);

    RP_TRY(rp_arena_check(&w->arena, "writing a table", err));
    memset(map, 0xff, (size_t)d->length * sizeof *map);
    for (int64_t i = 0; i < a->length; i++) {
        int64_t from =
            narrow ? ((const int8_t *)a->buffers[1])[i] : ((const int32_t *)a->buffers[1])[i];

        rows[i] = 0;
        if (valid && !(valid[i / 8] >> i % 8 & 1))
            continue;
        if (from < 0 || from >= d->length)
            return rp_err_set(err, RP_BUG, "row %lld of '%s' has no text in its dictionary",
                              (long long)i, w->schema.children[column]->name);

        /* Finds the number of a text in the dictionary of the file. map is by number in the
           batch. */
        const int64_t *ends = d->buffers[1];
        const char *bytes = d->buffers[2];
        if (map[from] == RP_NONE) {
            RP_TRY(rp_strtab_intern(&w->texts[column], bytes + ends[from],
                                    (size_t)(ends[from + 1] - ends[from]), &map[from], err));
        }
        rows[i] = map[from];
    }
    *out = rows;
    return RP_OK;
}

static enum rp_code write_dictionary(struct ipc *w, size_t column, struct rp_err *err)
{
    const struct rp_strtab *texts = &w->texts[column];
    struct ArrowArray all = {.length = texts->n, .buffers = (const void *[3]){0}};
    struct rp_arrow_texts copy = {0};
    struct rp_arrow_data data = {0};
    struct block block;
    enum rp_code code = RP_OK;

    begin_message(w);
    for (uint32_t i = 0; code == RP_OK && i < texts->n; i++)
        code = rp_arrow_add_text(&copy, rp_strtab_borrow(texts, i), rp_strtab_len(texts, i), err);
    enum rp_code kept = rp_arrow_keep_texts(&copy, &w->arena, &data, code == RP_OK ? err : NULL);
    RP_TRY(code);
    RP_TRY(kept);
    all.buffers[2] = data.bytes;
    RP_TRY(
        add_column(w, find_kind(w->schema.children[column]->dictionary), &all, data.values, err));
    uint32_t batch = put_batch(w, all.length);
    rp_flat_begin(&w->flat);
    rp_flat_add(&w->flat, 0, (int64_t)column, sizeof(int64_t));
    rp_flat_add_ref(&w->flat, 1, batch);
    RP_TRY(write_message(w, DICTIONARY_BATCH, rp_flat_end(&w->flat), &block, err));
    return rp_vec_push(&w->dictionary_blocks, block, err);
}

/* ------------------------------------------------------------------ the file */

static enum rp_code write_batch(struct ipc *w, const struct ArrowArray *batch, struct rp_err *err)
{
    struct block block;

    begin_message(w);
    for (size_t i = 0; i < w->ncolumns; i++) {
        const struct ArrowArray *a = batch->children[i];
        const uint32_t *rows;

        if (a->dictionary) {
            RP_TRY(map_column(w, i, a, &rows, err));
            RP_TRY(add_column(w, &index_kind, a, rows, err));
        } else {
            RP_TRY(add_column(w, find_kind(w->schema.children[i]), a, a->buffers[1], err));
        }
    }
    RP_TRY(write_message(w, RECORD_BATCH, put_batch(w, batch->length), &block, err));
    return rp_vec_push(&w->batch_blocks, block, err);
}

static enum rp_code read_stream(struct ipc *w, struct ArrowArrayStream *stream, int64_t *rows,
                                struct rp_err *err)
{
    struct ArrowArray batch;

    *rows = 0;
    if (stream->get_schema(stream, &w->schema))
        return rp_err_set(err, RP_NOMEM, "%s", stream->get_last_error(stream));
    w->ncolumns = (size_t)w->schema.n_children;
    for (;;) {
        RP_TRY(rp_vec_reserve(&w->batches, 1, err));
        if (stream->get_next(stream, &batch))
            return rp_err_set(err, RP_NOMEM, "%s", stream->get_last_error(stream));
        if (!batch.release)
            return RP_OK;
        w->batches.at[w->batches.n++] = batch;
        *rows += batch.length;
    }
}

static enum rp_code write_file(struct ipc *w, struct rp_err *err)
{
    w->texts = calloc(w->ncolumns + 1, sizeof *w->texts);
    RP_TRY(rp_err_need(w->texts, err, "writing a table"));
    rp_out_write(w->out, magic, sizeof magic);
    struct block block;
    for (size_t i = 0; i < w->ncolumns; i++) {
        const struct ArrowSchema *s = w->schema.children[i];

        if (!find_kind(s) || (s->dictionary && s->dictionary->format[0] != 'U') ||
            (s->dictionary && s->format[0] != 'c' && s->format[0] != 'i'))
            return rp_err_set(err, RP_BUG, "column '%s' has a type that cannot be written: '%s'",
                              s->name, s->format);
    }
    begin_message(w);
    RP_TRY(write_message(w, SCHEMA, put_schema(w), &block, err));

    /* Writes each column's texts of all batches before the first batch, so that readers that never
       look at the footer know them in time. */
    const uint32_t *rows;
    for (size_t i = 0; i < w->ncolumns; i++) {
        if (!w->schema.children[i]->dictionary)
            continue;
        RP_TRY(rp_strtab_init(&w->texts[i], err));
        for (size_t k = 0; k < w->batches.n; k++) {
            begin_message(w); /* empties the arena */
            RP_TRY(map_column(w, i, w->batches.at[k].children[i], &rows, err));
        }
        RP_TRY(write_dictionary(w, i, err));
    }
    for (size_t i = 0; i < w->batches.n; i++)
        RP_TRY(write_batch(w, &w->batches.at[i], err));
    static const int32_t end[2] = {-1, 0};
    struct rp_flat *f = &w->flat;
    const void *bytes;
    size_t n;
    rp_out_write(w->out, end, sizeof end);
    begin_message(w);
    uint32_t schema = put_schema(w);
    uint32_t dictionaries = rp_flat_structs(f, w->dictionary_blocks.at, w->dictionary_blocks.n,
                                            sizeof *w->dictionary_blocks.at);
    uint32_t batches =
        rp_flat_structs(f, w->batch_blocks.at, w->batch_blocks.n, sizeof *w->batch_blocks.at);
    rp_flat_begin(f);
    rp_flat_add_ref(f, 1, schema);
    rp_flat_add_ref(f, 2, dictionaries);
    rp_flat_add_ref(f, 3, batches);
    rp_flat_add(f, 0, VERSION_5, sizeof(int16_t));
    rp_flat_finish(f, rp_flat_end(f));
    RP_TRY(rp_flat_written(f, &bytes, &n, err));
    RP_TRY(rp_arena_check(&w->arena, "writing a table", err));
    int32_t length = (int32_t)n;
    rp_out_write(w->out, bytes, n);
    rp_out_write(w->out, &length, sizeof length);
    rp_out_write(w->out, magic, 6);
    return RP_OK;
}

enum rp_code rp_ipc_save(struct ArrowArrayStream *stream, const char *path, int64_t *rows,
                         struct rp_err *err)
{
    struct ipc w = {.arena = RP_ARENA_INIT};
    enum rp_code code = read_stream(&w, stream, rows, err);

    if (code == RP_OK)
        code = rp_out_open(path, &w.out, err);
    if (code == RP_OK)
        code = write_file(&w, err);
    code = rp_out_end(w.out, code, err);
    for (size_t i = 0; i < w.batches.n; i++)
        w.batches.at[i].release(&w.batches.at[i]);
    for (size_t i = 0; w.texts && i < w.ncolumns; i++)
        rp_strtab_release(&w.texts[i]);
    if (w.schema.release)
        w.schema.release(&w.schema);
    free(w.texts);
    RP_EACH(rp_vec_release, &w.batches, &w.dictionary_blocks, &w.batch_blocks, &w.nodes, &w.places,
            &w.buffers);
    rp_flat_release(&w.flat);
    rp_arena_release(&w.arena);
    return code;
}
