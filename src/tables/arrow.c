/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes schemas and batches of the Arrow C data interface. All structs of one schema or batch are
 * in one block with a count: consumers may move children out and release them in any order, and the
 * last one frees the block.
 */
#include "tables/arrow.h"

#include "base/escape.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

struct block {
    atomic_size_t users;
    struct rp_arena arena;
    struct rp_arrow_owner owner;
};

static struct block *new_block(struct rp_arena *arena, const struct rp_arrow_owner *owner)
{
    struct block *b = malloc(sizeof *b);

    if (!b) {
        rp_arena_release(arena);
        return NULL;
    }
    *b = (struct block){.arena = RP_ARENA_INIT};
    rp_arena_adopt(&b->arena, arena);
    atomic_init(&b->users, 1);
    if (owner && owner->hold) {
        b->owner = *owner;
        owner->hold(owner->what);
    }
    return b;
}

static void drop_block(struct block *b)
{
    if (atomic_fetch_sub(&b->users, 1) != 1)
        return;
    if (b->owner.drop)
        b->owner.drop(b->owner.what);
    rp_arena_release(&b->arena);
    free(b);
}

/* ------------------------------------------------------------------ schemas */

static void release_schema(struct ArrowSchema *s)
{
    for (int64_t i = 0; i < s->n_children; i++)
        if (s->children[i]->release)
            s->children[i]->release(s->children[i]);
    if (s->dictionary && s->dictionary->release)
        s->dictionary->release(s->dictionary);
    s->release = NULL;
    drop_block(s->private_data);
}

static void init_schema(struct ArrowSchema *s, struct block *b, const char *format,
                        const char *name)
{
    *s = (struct ArrowSchema){.format = rp_arena_text(&b->arena, format),
                              .name = rp_arena_text(&b->arena, name),
                              .release = release_schema,
                              .private_data = b};
    atomic_fetch_add(&b->users, 1);
}

static char *put_counted(char *to, const char *text)
{
    int32_t n = (int32_t)strlen(text);

    memcpy(to, &n, sizeof n);
    memcpy(to + sizeof n, text, (size_t)n);
    return to + sizeof n + n;
}

/* The number of pairs, then key and value with their lengths before them. */
static const char *field_metadata(struct rp_arena *arena, const struct rp_arrow_field *f)
{
    size_t size =
        5 * sizeof(int32_t) + strlen("unit") + strlen(f->unit) + strlen("doc") + strlen(f->doc);
    char *out = rp_arena_alloc(arena, size, 8);
    int32_t n = 2;

    if (!out)
        return NULL;
    memcpy(out, &n, sizeof n);
    char *at = put_counted(out + sizeof n, "unit");
    at = put_counted(at, f->unit);
    at = put_counted(at, "doc");
    put_counted(at, f->doc);
    return out;
}

enum rp_code rp_arrow_schema(const struct rp_arrow_field *fields, size_t n, struct ArrowSchema *out,
                             struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct block *b = new_block(&arena, NULL);
    struct ArrowSchema *all = b ? RP_ARENA_NEW(&b->arena, struct ArrowSchema, n + 1) : NULL;

    out->release = NULL;
    RP_TRY(rp_err_need(b, err, "describing a table"));
    init_schema(out, b, "+s", "");
    out->children = RP_ARENA_NEW(&b->arena, struct ArrowSchema *, n + 1);
    for (size_t i = 0; all && out->children && i < n; i++) {
        struct ArrowSchema *s = &all[i];
        const struct rp_arrow_field *f = &fields[i];
        init_schema(s, b, f->format, f->name);
        s->flags = f->nullable ? ARROW_FLAG_NULLABLE : 0;
        s->metadata = f->doc ? field_metadata(&b->arena, f) : NULL;
        s->dictionary = f->values ? RP_ARENA_NEW(&b->arena, struct ArrowSchema, 1) : NULL;
        if (s->dictionary)
            init_schema(s->dictionary, b, f->values, "");
        out->children[i] = &all[i];
        out->n_children++;
    }
    enum rp_code code = rp_arena_check(&b->arena, "describing a table", err);
    drop_block(b); /* the schema owns it now */
    if (code != RP_OK)
        out->release(out);
    return code;
}

/* ------------------------------------------------------------------ batches */

static void release_array(struct ArrowArray *a)
{
    for (int64_t i = 0; i < a->n_children; i++)
        if (a->children[i]->release)
            a->children[i]->release(a->children[i]);
    if (a->dictionary && a->dictionary->release)
        a->dictionary->release(a->dictionary);
    a->release = NULL;
    drop_block(a->private_data);
}

static void init_array(struct ArrowArray *a, struct block *b, const struct rp_arrow_data *d)
{
    *a = (struct ArrowArray){.length = d->length,
                             .null_count = d->nulls,
                             .n_buffers = d->bytes    ? 3
                                          : d->values ? 2
                                                      : 1,
                             .buffers = RP_ARENA_NEW(&b->arena, const void *, 3),
                             .release = release_array,
                             .private_data = b};
    atomic_fetch_add(&b->users, 1);
    if (!a->buffers)
        return;
    a->buffers[0] = d->nulls ? d->valid : NULL;
    a->buffers[1] = d->values;
    a->buffers[2] = d->bytes;
    if (!d->dictionary)
        return;
    a->dictionary = RP_ARENA_NEW(&b->arena, struct ArrowArray, 1);
    if (a->dictionary) /* a dictionary cannot have another one */
        *a->dictionary = (struct ArrowArray){.length = d->dictionary->length,
                                             .n_buffers = 3,
                                             .buffers = RP_ARENA_NEW(&b->arena, const void *, 3),
                                             .release = release_array,
                                             .private_data = b};
    if (!a->dictionary)
        return;
    atomic_fetch_add(&b->users, 1);
    if (a->dictionary->buffers) {
        a->dictionary->buffers[1] = d->dictionary->values;
        a->dictionary->buffers[2] = d->dictionary->bytes;
    }
}

enum rp_code rp_arrow_batch(const struct rp_arrow_data *columns, size_t n, int64_t length,
                            struct rp_arena *arena, const struct rp_arrow_owner *owner,
                            struct ArrowArray *out, struct rp_err *err)
{
    struct rp_arrow_data rows = {.length = length};
    struct block *b = new_block(arena, owner);

    out->release = NULL;
    RP_TRY(rp_err_need(b, err, "making a batch"));
    init_array(out, b, &rows);
    struct ArrowArray *all = RP_ARENA_NEW(&b->arena, struct ArrowArray, n + 1);
    out->children = RP_ARENA_NEW(&b->arena, struct ArrowArray *, n + 1);
    for (size_t i = 0; all && out->children && i < n; i++) {
        init_array(&all[i], b, &columns[i]);
        out->children[i] = &all[i];
        out->n_children++;
    }
    enum rp_code code = rp_arena_check(&b->arena, "making a batch", err);
    drop_block(b); /* now it is the batch's */
    if (code != RP_OK)
        out->release(out);
    return code;
}

/* ------------------------------------------------------------------ texts */

enum rp_code rp_arrow_add_text(struct rp_arrow_texts *texts, const char *text, size_t n,
                               struct rp_err *err)
{
    const char *end = text + n;

    if (!texts->ends.n)
        RP_TRY(rp_vec_push(&texts->ends, 0, err));
    RP_TRY(rp_vec_reserve(&texts->bytes, 3 * n + 1, err)); /* each byte may have to be replaced */
    while (text < end) {
        char *to = texts->bytes.at + texts->bytes.n;
        uint32_t code = (unsigned char)*text;
        size_t len = 1;

        if (code < 0x80) {
            *to = *text;
            texts->bytes.n++;
        } else {
            len = rp_utf8_decode(text, end, &code);
            texts->bytes.n += rp_utf8_encode(to, code == RP_UTF8_BAD ? 0xfffd : code);
        }
        text += len;
    }
    return rp_vec_push(&texts->ends, (int64_t)texts->bytes.n, err);
}

enum rp_code rp_arrow_keep_texts(struct rp_arrow_texts *texts, struct rp_arena *arena,
                                 struct rp_arrow_data *out, struct rp_err *err)
{
    static const int64_t nothing[1] = {0};
    enum rp_code code;

    out->values = texts->ends.n ? texts->ends.at : nothing;
    out->bytes = texts->bytes.n ? texts->bytes.at : (const void *)nothing;
    code =
        rp_arena_adopt_column(arena, texts->ends.at, texts->ends.cap, sizeof *texts->ends.at, err);
    enum rp_code second = rp_arena_adopt_column(arena, texts->bytes.at, texts->bytes.cap, 1,
                                                code == RP_OK ? err : NULL);
    return code == RP_OK ? second : code;
}

/* ------------------------------------------------------------------ a stream of one batch */

struct one_batch {
    struct rp_arena arena;
    struct rp_arrow_field *fields;
    size_t n;
    struct ArrowArray batch;
    struct rp_err err;
};

static int one_schema(struct ArrowArrayStream *s, struct ArrowSchema *out)
{
    struct one_batch *one = s->private_data;

    return rp_arrow_schema(one->fields, one->n, out, &one->err) == RP_OK ? 0 : ENOMEM;
}

static int one_next(struct ArrowArrayStream *s, struct ArrowArray *out)
{
    struct one_batch *one = s->private_data;

    *out = one->batch; /* when it was already released, it is the end */
    one->batch.release = NULL;
    return 0;
}

static const char *one_error(struct ArrowArrayStream *s)
{
    return ((struct one_batch *)s->private_data)->err.text;
}

static void one_release(struct ArrowArrayStream *s)
{
    struct one_batch *one = s->private_data;

    if (one->batch.release)
        one->batch.release(&one->batch);
    rp_arena_release(&one->arena);
    free(one);
    s->release = NULL;
}

enum rp_code rp_arrow_stream_of(const struct rp_arrow_field *fields, size_t n,
                                struct ArrowArray *batch, struct ArrowArrayStream *out,
                                struct rp_err *err)
{
    struct one_batch *one = calloc(1, sizeof *one);

    *out = (struct ArrowArrayStream){0};
    if (!one) {
        batch->release(batch);
        return rp_err_nomem(err, "making a stream");
    }
    *out = (struct ArrowArrayStream){one_schema, one_next, one_error, one_release, one};
    one->batch = *batch;
    one->n = n;
    one->fields = RP_ARENA_NEW(&one->arena, struct rp_arrow_field, n + 1);
    for (size_t i = 0; one->fields && i < n; i++) {
        one->fields[i] = fields[i]; /* formats are constants */
        one->fields[i].name = rp_arena_text(&one->arena, fields[i].name);
        one->fields[i].doc = rp_arena_text(&one->arena, fields[i].doc);
        one->fields[i].unit = rp_arena_text(&one->arena, fields[i].unit);
    }
    if (rp_arena_check(&one->arena, "making a stream", err) == RP_OK)
        return RP_OK;
    out->release(out);
    return RP_NOMEM;
}
