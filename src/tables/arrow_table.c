/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a table a stream of Arrow batches. A column whose elements are contiguous is used in place;
 * the values of others are gathered, each column by one thread. Names and words are dictionaries:
 * their numbers are those of the trace, and the texts of a trace are copied once a batch (Arrow's
 * have no NUL between them, and must be UTF-8). Texts that many rows share by an element, such as
 * the thread of a track, are dictionaries, too.
 */
#include "base/names.h"
#include "base/threads.h"
#include "tables/arrow.h"
#include "tables/gather.h"

#include <errno.h>
#include <stdlib.h>

#define MANY_ROWS 8192

/* Names, words, and texts of elements that many rows share. */
static bool is_dictionary(const struct rp_table_column *c)
{
    return c->cell == RP_CELL_NAME || c->cell == RP_CELL_WORD ||
           (c->cell == RP_CELL_TEXT && c->via);
}

static struct rp_arrow_field arrow_field_of(const struct rp_table_column *c)
{
    static const char *const formats[] = {
        [RP_CELL_I64] = "l",  [RP_CELL_U32] = "I",  [RP_CELL_I32] = "i",  [RP_CELL_F64] = "g",
        [RP_CELL_BOOL] = "b", [RP_CELL_NAME] = "i", [RP_CELL_WORD] = "c", [RP_CELL_TEXT] = "U",
        [RP_CELL_END] = "l",  [RP_CELL_SINCE] = "l"};

    return (struct rp_arrow_field){.name = c->name,
                                   .format =
                                       c->cell == RP_CELL_TEXT && c->via ? "i" : formats[c->cell],
                                   .values = is_dictionary(c) ? "U" : NULL,
                                   .unit = rp_table_unit_name(c),
                                   .doc = c->doc,
                                   .nullable = c->nullable};
}

/* A batch that is being made: threads fill columns of their own, and share the arena. */
struct batch {
    const struct rp_table_rank *r;
    const struct rp_table_column *const *columns;
    struct rp_arrow_data data[RP_TABLE_COLUMNS_MAX];
    size_t n; /* rows */
    pthread_mutex_t lock;
    struct rp_arena arena;             /* it becomes the arena of the batch */
    const struct rp_arrow_data *names; /* the texts of the trace; NULL if no column has them */
};

/* Allocates the rows of a column, not cleared; the alignment is that which Arrow recommends. */
static void *batch_alloc(struct batch *b, size_t size)
{
    pthread_mutex_lock(&b->lock);
    void *memory = rp_arena_alloc(&b->arena, (b->n + 1) * size, 64);
    pthread_mutex_unlock(&b->lock);
    return memory;
}

static enum rp_code keep_texts(struct batch *b, struct rp_arrow_texts *texts,
                               struct rp_arrow_data *out, struct rp_err *err)
{
    pthread_mutex_lock(&b->lock);
    enum rp_code code = rp_arrow_keep_texts(texts, &b->arena, out, err);
    pthread_mutex_unlock(&b->lock);
    return code;
}

static void put_bit(uint8_t *bits, size_t i)
{
    bits[i / 8] |= (uint8_t)(1u << i % 8);
}

/* Notes which rows have a value as bits, row by row; nothing if all have one. */
static enum rp_code note_nulls(struct batch *b, const struct rp_table_column *c,
                               struct rp_arrow_data *out, struct rp_err *err)
{
    if (!c->nullable && !c->via)
        return RP_OK;
    uint8_t *bits = batch_alloc(b, 1);
    RP_TRY(rp_err_need(bits, err, "making a batch"));
    memset(bits, 0, b->n / 8 + 1);
    for (size_t i = 0; i < b->n; i++) {
        int64_t value;
        size_t len;
        double real;
        bool there = c->cell == RP_CELL_TEXT  ? rp_table_text(b->r, c, i, &len) != NULL
                     : c->cell == RP_CELL_F64 ? rp_table_real(b->r, c, i, &real)
                                              : rp_table_int(b->r, c, i, &value);

        if (there)
            put_bit(bits, i);
        out->nulls += !there;
    }
    out->valid = bits;
    return RP_OK;
}

/* Does the same for values that are already an array. */
static enum rp_code note_equal(struct batch *b, size_t size, int64_t null,
                               struct rp_arrow_data *out, struct rp_err *err)
{
    uint8_t *bits;

    out->nulls = (int64_t)rp_gather_nulls(out->values, size, b->n, null);
    if (!out->nulls)
        return RP_OK;
    out->valid = bits = batch_alloc(b, 1);
    RP_TRY(rp_err_need(bits, err, "making a batch"));
    rp_gather_valid(out->values, size, b->n, null, bits);
    return RP_OK;
}

static enum rp_code gather_bits(struct batch *b, const struct rp_table_column *c,
                                struct rp_arrow_data *out, struct rp_err *err)
{
    uint8_t *bits = batch_alloc(b, 1);
    int64_t value;

    RP_TRY(rp_err_need(bits, err, "making a batch"));
    memset(bits, 0, b->n / 8 + 1);
    for (size_t i = 0; i < b->n; i++)
        if (rp_table_int(b->r, c, i, &value) && value)
            put_bit(bits, i);
    out->values = bits;
    return note_nulls(b, c, out, err);
}

/* Takes fixed-size values in place if they are contiguous. */
static enum rp_code gather_values(struct batch *b, const struct rp_table_column *c,
                                  struct rp_arrow_data *out, struct rp_err *err)
{
    size_t size = rp_gather_size(c);
    bool none = false;
    void *to;

    if (rp_gather_in_place(b->r, c) && b->n) {
        out->values = (const char *)b->r->arrays[c->array].at + c->offset;
    } else {
        out->values = to = batch_alloc(b, size);
        RP_TRY(rp_err_need(to, err, "making a batch"));
        rp_gather(b->r, c, b->n, to);
    }
    if (c->cell == RP_CELL_F64)
        return note_nulls(b, c, out, err);
    if (c->nullable)
        return note_equal(b, size, c->null, out, err);
    if (c->via)
        rp_gather_reach(b->r, c, b->n, &none);
    return none ? note_nulls(b, c, out, err) : RP_OK;
}

static enum rp_code gather_texts(struct batch *b, const struct rp_table_column *c,
                                 struct rp_arrow_data *out, struct rp_err *err)
{
    struct rp_arrow_texts texts = {0};
    enum rp_code code = RP_OK;
    size_t len;

    for (size_t i = 0; code == RP_OK && i < b->n; i++) {
        const char *text = rp_table_text(b->r, c, i, &len);

        code = rp_arrow_add_text(&texts, text ? text : "", len, err);
    }
    enum rp_code kept = keep_texts(b, &texts, out, code == RP_OK ? err : NULL);
    RP_TRY(code == RP_OK ? kept : code);
    return note_nulls(b, c, out, err);
}

/* ------------------------------------------------------------------ dictionaries */

static struct rp_arrow_data *new_dictionary(struct batch *b)
{
    pthread_mutex_lock(&b->lock);
    struct rp_arrow_data *d = RP_ARENA_NEW(&b->arena, struct rp_arrow_data, 1);
    pthread_mutex_unlock(&b->lock);
    return d;
}

/* The texts of the trace, or the words of a column. */
static enum rp_code make_dictionary(struct batch *b, const struct rp_table_column *c,
                                    const struct rp_arrow_data **out, struct rp_err *err)
{
    const struct rp_trace *t = b->r->trace;
    struct rp_arrow_data *d = new_dictionary(b);
    uint32_t n = c->cell == RP_CELL_NAME ? t->str.n : c->nwords;
    struct rp_arrow_texts texts = {0};
    enum rp_code code = d ? RP_OK : rp_err_nomem(err, "making a batch"), kept = RP_OK;

    for (uint32_t i = 0; code == RP_OK && i < n; i++) {
        const char *text = c->cell == RP_CELL_NAME ? rp_trace_str(t, i) : c->word((uint8_t)i);
        size_t len = c->cell == RP_CELL_NAME ? rp_trace_str_len(t, i) : strlen(text);

        code = rp_arrow_add_text(&texts, text, len, err);
    }
    if (d) {
        d->length = n;
        kept = keep_texts(b, &texts, d, code == RP_OK ? err : NULL);
    }
    *out = d;
    return code == RP_OK ? kept : code;
}

/* Numbers the different texts of the first n elements, and gives each element the number of its
   text; -1 for NULL. */
static enum rp_code number_texts(const struct rp_table_span *span, size_t offset, uint32_t n,
                                 int32_t *map, struct rp_arrow_texts *texts, struct rp_err *err)
{
    RP_SCOPED(rp_names_release) struct rp_names names = {0};
    uint32_t different = 0;

    for (uint32_t i = 0; i < n; i++) {
        const char *text = *(const char *const *)(const void *)((const char *)span->at +
                                                                span->stride * i + offset);

        uint32_t found = rp_names_find(&names, text);
        if (text && found == RP_NONE) {
            found = different++;
            RP_TRY(rp_names_add(&names, text, found, err));
            RP_TRY(rp_arrow_add_text(texts, text, strlen(text), err));
        }
        map[i] = (int32_t)found;
    }
    return RP_OK;
}

/* Gathers texts of few elements (tracks, streams) that many rows share. */
static enum rp_code gather_shared(struct batch *b, const struct rp_table_column *c,
                                  struct rp_arrow_data *out, struct rp_err *err)
{
    struct rp_arrow_texts texts = {0};
    struct rp_arrow_data *d = new_dictionary(b);
    int32_t *to = batch_alloc(b, sizeof *to), *map;
    bool none;
    uint32_t n = rp_gather_reach(b->r, c, b->n, &none);

    map = calloc((size_t)n + 1, sizeof *map);
    enum rp_code code = d && to && map
                            ? number_texts(&b->r->arrays[c->array], c->offset, n, map, &texts, err)
                            : rp_err_nomem(err, "making a batch");
    if (code == RP_OK)
        rp_gather_mapped(b->r, c, b->n, map, to);
    free(map);
    out->values = to;
    if (d) {
        d->length = texts.ends.n ? (int64_t)texts.ends.n - 1 : 0;
        enum rp_code kept = keep_texts(b, &texts, d, code == RP_OK ? err : NULL);
        code = code == RP_OK ? kept : code;
    }
    out->dictionary = d;
    return code == RP_OK ? note_equal(b, sizeof *to, -1, out, err) : code;
}

static enum rp_code make_column(void *user, size_t i, struct rp_err *err)
{
    struct batch *b = user;
    const struct rp_table_column *c = b->columns[i];
    struct rp_arrow_data *out = &b->data[i];

    *out = (struct rp_arrow_data){.length = (int64_t)b->n};
    if (c->cell == RP_CELL_BOOL)
        return gather_bits(b, c, out, err);
    if (c->cell == RP_CELL_TEXT)
        return c->via ? gather_shared(b, c, out, err) : gather_texts(b, c, out, err);
    RP_TRY(gather_values(b, c, out, err));
    out->dictionary = c->cell == RP_CELL_NAME ? b->names : NULL;
    return c->cell == RP_CELL_WORD ? make_dictionary(b, c, &out->dictionary, err) : RP_OK;
}

/* Uses several threads if that is worth their start. */
static enum rp_code make_columns(struct batch *b, size_t n, unsigned threads, struct rp_err *err)
{
    struct rp_pool *pool = NULL;
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && !b->names && i < n; i++)
        if (b->columns[i]->cell == RP_CELL_NAME)
            code = make_dictionary(b, b->columns[i], &b->names, err);
    threads = b->n < MANY_ROWS ? 1 : threads < n ? threads : (unsigned)n;
    if (code == RP_OK)
        code = rp_pool_new(threads, &pool, err);
    if (code == RP_OK)
        code = rp_pool_each(pool, n, make_column, b, err);
    rp_pool_free(pool);
    return code;
}

/* ------------------------------------------------------------------ the stream */

struct table_stream {
    const struct rp_table_set *set;
    const struct rp_table *table;
    const struct rp_table_column *columns[RP_TABLE_COLUMNS_MAX];
    size_t ncolumns;
    struct rp_arrow_owner owner;
    size_t next;
    struct rp_err err;
};

static int code_errno(enum rp_code code)
{
    return code == RP_OK ? 0 : code == RP_NOMEM ? ENOMEM : EIO;
}

static int table_schema(struct ArrowArrayStream *s, struct ArrowSchema *out)
{
    struct table_stream *from = s->private_data;
    struct rp_arrow_field fields[RP_TABLE_COLUMNS_MAX];

    for (size_t i = 0; i < from->ncolumns; i++)
        fields[i] = arrow_field_of(from->columns[i]);
    return code_errno(rp_arrow_schema(fields, from->ncolumns, out, &from->err));
}

static int table_next(struct ArrowArrayStream *s, struct ArrowArray *out)
{
    struct table_stream *from = s->private_data;
    struct batch b = {.arena = RP_ARENA_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

    *out = (struct ArrowArray){0};
    if (from->next >= rp_table_parts(from->set, from->table))
        return 0; /* released: the end */
    b.r = rp_table_part(from->set, from->table, from->next++);
    b.n = b.r->nrows[rp_table_id(from->table)];
    b.columns = from->columns;
    enum rp_code code = make_columns(&b, from->ncolumns, from->set->threads, &from->err);
    pthread_mutex_destroy(&b.lock);
    if (code != RP_OK)
        rp_arena_release(&b.arena);
    else
        code = rp_arrow_batch(b.data, from->ncolumns, (int64_t)b.n, &b.arena, &from->owner, out,
                              &from->err);
    return code_errno(code);
}

static const char *table_error(struct ArrowArrayStream *s)
{
    struct table_stream *from = s->private_data;

    return from->err.text;
}

static void table_release(struct ArrowArrayStream *s)
{
    struct table_stream *from = s->private_data;

    if (from->owner.drop)
        from->owner.drop(from->owner.what);
    free(from);
    s->release = NULL;
}

/* Chooses all columns, or those with these names. */
static enum rp_code choose_columns(struct table_stream *from, const char *const *names, size_t n,
                                   struct rp_err *err)
{
    const struct rp_table *table = from->table;

    for (size_t i = 0; i < (n ? n : table->ncolumns); i++) {
        size_t k = n ? 0 : i;

        while (n && k < table->ncolumns && strcmp(table->columns[k].name, names[i]) != 0)
            k++;
        if (k == table->ncolumns)
            return rp_err_set(err, RP_USAGE, "table '%s' has no column '%s'", table->name,
                              names[i]);
        if (from->ncolumns == RP_TABLE_COLUMNS_MAX)
            return rp_err_set(err, RP_USAGE, "more than %d columns", RP_TABLE_COLUMNS_MAX);
        from->columns[from->ncolumns++] = &table->columns[k];
    }
    return RP_OK;
}

enum rp_code rp_arrow_stream(const struct rp_table_set *set, const struct rp_table *table,
                             const char *const *columns, size_t ncolumns,
                             const struct rp_arrow_owner *owner, struct ArrowArrayStream *out,
                             struct rp_err *err)
{
    struct table_stream *from = calloc(1, sizeof *from);

    *out = (struct ArrowArrayStream){0};
    RP_TRY(rp_err_need(from, err, "making a stream"));
    from->set = set;
    from->table = table;
    enum rp_code code = choose_columns(from, columns, ncolumns, err);
    if (code != RP_OK) {
        free(from);
        return code;
    }
    if (owner && owner->hold) {
        from->owner = *owner;
        owner->hold(owner->what);
    }
    *out = (struct ArrowArrayStream){.get_schema = table_schema,
                                     .get_next = table_next,
                                     .get_last_error = table_error,
                                     .release = table_release,
                                     .private_data = from};
    return RP_OK;
}
