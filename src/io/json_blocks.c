/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of JSON with their index. One function, fill_block, makes a block: it takes the tail of
 * the previous block, adds a chunk of the input, indexes it and finds the last position to cut. If
 * there is none (a very long string), it adds more, up to the limit of a token. fill_block runs on
 * the calling thread with one block, or on its own thread with a ring of four and two channels:
 *
 *     producer  --- full --->  consumer
 *               <-- empty ---
 *
 * Memory: the ring, 128 KiB of text and up to 512 KiB of index a block, of which about a quarter is
 * touched; more only for long tokens. Files are read, not mapped: copying costs less than the page
 * faults of a mapping, and a file that shrinks is an error instead of a signal.
 */
#include "io/json_blocks.h"

#include "base/each.h"
#include "base/threads.h"

#include <stdlib.h>

#define RING        4
#define BLOCK       (UINT32_C(128) << 10)
#define FIRST_CHUNK (UINT32_C(32) << 10) /* it is small so that the consumer can start early */
#define AGAIN_CHUNK (UINT32_C(4) << 10)  /* after a restart */
#define BLOCK_MAX   (UINT32_C(16) << 20)
#define TOKEN_MAX   (UINT64_C(1) << 30) /* positions are 32-bit */
#define TOKEN_ROOM  (UINT32_C(64) << 10)
#define DRAIN_KEEP  ((size_t)1 << 30) /* the most bytes that a drain holds */

/* A key and a value have four quotes; a fifth without a comma or bracket is an error that the
 * consumer finds before it gets there. So a tail has at most this many entries. */
#define TAIL_ENTRIES 4

struct rp_json_blocks {
    struct rp_input *in;
    char *held; /* bytes returned by a restart, which are read before the input */
    size_t held_at, held_n;
    uint64_t taken; /* offset after the last byte of the blocks */
    uint64_t input_max, token_max;
    enum rp_json_stop ended; /* why the input itself ended; bytes may still be held */
    enum rp_json_stop stop;  /* no more blocks */
    struct rp_err err;

    rp_json_index_fn *index;
    struct rp_json_index_state state;
    uint32_t chunk, chunk_max;
    const struct rp_json_block *last; /* the block filled before, which has the tail */
    uint32_t tail_index[TAIL_ENTRIES];
    size_t tail_index_n;

    struct rp_json_block ring[RING];
    size_t ring_n;
    struct rp_json_block *current; /* the block in use by the consumer */
    struct rp_json_block *unsent;  /* a block filled after the consumer closed the channel */
    struct rp_channel full, empty;
    pthread_t thread;
    bool want_thread, running;
};

/* -------------------------------------------------------------------------- one block */

static bool reserve_text(struct rp_json_blocks *b, struct rp_json_block *blk, size_t cap)
{
    if (cap <= blk->cap)
        return true;
    if (cap < blk->cap * 2 && blk->cap > b->chunk_max)
        cap = blk->cap * 2;
    char *text = realloc(blk->text, cap);
    if (!text) {
        rp_err_nomem(&b->err, "reading JSON");
        b->stop = RP_JSON_STOP_INPUT;
        return false;
    }
    blk->text = text;
    blk->cap = cap;
    return true;
}

/* Begins a block with the tail of the last one. */
static void begin_block(struct rp_json_blocks *b, struct rp_json_block *blk)
{
    size_t from = b->last ? b->last->n : 0;
    size_t tail = b->last ? b->last->filled - from : 0;

    blk->plain = !tail || b->last->plain;
    blk->truncated = false;
    blk->offset = b->taken - tail;
    blk->filled = blk->index_n = 0;
    if (!reserve_text(b, blk, tail + 1))
        return;
    if (tail)
        memmove(blk->text, b->last->text + from, tail);
    blk->filled = tail;
    blk->index_n = b->tail_index_n;
    memcpy(blk->index, b->tail_index, b->tail_index_n * sizeof *blk->index);

    /* Shrinks a block after a long token, because it would stay large. */
    size_t cap = (size_t)4 * b->chunk_max + blk->filled;
    if (blk->cap > 2 * cap) {
        char *text = realloc(blk->text, cap);
        if (text) {
            blk->text = text;
            blk->cap = cap;
        }
    }
}

static size_t read_held(struct rp_json_blocks *b, char *to, size_t cap)
{
    size_t n = b->held_n - b->held_at;

    if (n > cap)
        n = cap;
    if (n)
        memcpy(to, b->held + b->held_at, n);
    b->held_at += n;
    if (b->held_at == b->held_n) {
        free(b->held);
        b->held = NULL;
        b->held_at = b->held_n = 0;
    }
    return n;
}

/* Reads up to cap bytes, fewer only at the end, for which b->stop is the reason. */
static size_t read_bytes(struct rp_json_blocks *b, char *to, size_t cap)
{
    size_t n = b->held ? read_held(b, to, cap) : 0, got;

    while (n < cap && b->ended == RP_JSON_STOP_NONE) {
        if (rp_input_read(b->in, to + n, cap - n, &got, &b->err) != RP_OK)
            b->ended = RP_JSON_STOP_INPUT;
        else if (!got)
            b->ended = RP_JSON_STOP_END;
        else
            n += got;
    }
    if (n < cap)
        b->stop = b->ended;
    return n;
}

/* Adds a chunk of the input; returns its size. */
static size_t take_chunk(struct rp_json_blocks *b, struct rp_json_block *blk)
{
    size_t n = b->chunk;

    if (b->stop != RP_JSON_STOP_NONE || !reserve_text(b, blk, blk->filled + n + 1))
        return 0;
    n = read_bytes(b, blk->text + blk->filled, n);
    if (b->taken + n > b->input_max) {
        n = b->input_max > b->taken ? (size_t)(b->input_max - b->taken) : 0;

        rp_err_set_at(&b->err, RP_LIMIT, b->input_max, "the input is over the limit of %llu bytes",
                      (unsigned long long)b->input_max);
        b->stop = RP_JSON_STOP_INPUT;
    }
    blk->filled += n;
    b->taken += n;
    if (b->chunk < b->chunk_max)
        b->chunk = b->chunk_max / 2 < b->chunk ? b->chunk_max : b->chunk * 2;
    return n;
}

/* Cuts after the last structural byte and keeps the entries of the tail. */
static bool cut_block(struct rp_json_blocks *b, struct rp_json_block *blk)
{
    size_t tail;

    b->tail_index_n = 0;
    for (tail = 0; tail < blk->index_n && tail <= TAIL_ENTRIES; tail++) {
        uint32_t entry = blk->index[blk->index_n - tail - 1];

        if (blk->text[entry] == '"')
            continue;
        blk->n = (size_t)entry + 1;
        blk->index_n -= tail;
        b->tail_index_n = tail;
        for (size_t i = 0; i < tail; i++)
            b->tail_index[i] = blk->index[blk->index_n + i] - (uint32_t)blk->n;
        return true;
    }
    blk->n = blk->filled;
    return tail > TAIL_ENTRIES;
}

static bool is_space(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != ' ' && text[i] != '\n' && text[i] != '\r' && text[i] != '\t')
            return false;
    return true;
}

/* Whether a block that cannot be cut may grow. */
static bool may_grow(struct rp_json_blocks *b, struct rp_json_block *blk)
{
    if (blk->filled <= b->token_max + TOKEN_ROOM)
        return true;
    if (!blk->index_n && is_space(blk->text, blk->filled)) {
        blk->offset += blk->filled;
        blk->filled = 0;
        return true;
    }
    b->stop = RP_JSON_STOP_TOKEN;
    return false;
}

static void fill_block(struct rp_json_blocks *b, struct rp_json_block *blk)
{
    bool cut;

    begin_block(b, blk);
    b->state.control_bytes = b->state.backslash = 0;
    do {
        size_t n = take_chunk(b, blk), from = blk->filled - n;

        blk->index_n +=
            b->index(&b->state, blk->text + from, n, (uint32_t)from, blk->index + blk->index_n);
        cut = b->stop == RP_JSON_STOP_NONE && cut_block(b, blk);
    } while (!cut && b->stop == RP_JSON_STOP_NONE && may_grow(b, blk));
    if (b->stop != RP_JSON_STOP_NONE) {
        /* Ends the last block, which keeps everything and ends with a NUL. */
        b->tail_index_n = 0;
        blk->n = blk->filled;
        blk->text[blk->n] = '\0';
        blk->truncated = rp_input_truncated(b->in);
    }
    blk->stop = b->stop;
    blk->control_bytes = b->state.control_bytes;
    blk->plain = blk->plain && !b->state.backslash;
    for (size_t i = 0; i < RP_JSON_BLOCK_SENTINELS; i++)
        blk->index[blk->index_n + i] = (uint32_t)blk->n;
    b->last = blk;
}

/* -------------------------------------------------------------------------- the thread */

static void *produce_blocks(void *user)
{
    struct rp_json_blocks *b = user;
    void *item;

    while (b->stop == RP_JSON_STOP_NONE && rp_channel_take(&b->empty, &item)) {
        fill_block(b, item);
        if (!rp_channel_put(&b->full, item)) {
            b->unsent = item;
            break;
        }
    }
    rp_channel_close(&b->full);
    return NULL;
}

static bool new_block(struct rp_json_blocks *b)
{
    struct rp_json_block *blk = &b->ring[b->ring_n];

    blk->cap = b->chunk + 1;
    blk->text = malloc(blk->cap);
    blk->index =
        malloc((b->chunk_max + TAIL_ENTRIES + RP_JSON_INDEX_SLACK + RP_JSON_BLOCK_SENTINELS) *
               sizeof *blk->index);
    if (!blk->text || !blk->index) {
        RP_EACH(free, blk->text, blk->index);
        *blk = (struct rp_json_block){0};
        return false;
    }
    b->ring_n++;
    return true;
}

/* Starts the thread; if it fails, blocks are made on the calling thread. The current block is the
   first. */
static void start_thread(struct rp_json_blocks *b)
{
    b->want_thread = false;
    while (b->ring_n < RING)
        if (!new_block(b))
            return;
    if (rp_channel_init(&b->full, RING, NULL) != RP_OK)
        return;
    if (rp_channel_init(&b->empty, RING, NULL) == RP_OK) {
        for (size_t i = 1; i < RING; i++)
            rp_channel_put(&b->empty, &b->ring[i]);
        b->running = pthread_create(&b->thread, NULL, produce_blocks, b) == 0;
    }
    if (!b->running) {
        rp_channel_release(&b->full);
        rp_channel_release(&b->empty);
    }
}

static void stop_thread(struct rp_json_blocks *b)
{
    if (!b->running)
        return;
    rp_channel_close(&b->full);
    rp_channel_close(&b->empty);
    pthread_join(b->thread, NULL);
    b->running = false;
}

static bool channel_next(struct rp_json_blocks *b)
{
    void *item;

    if (b->current)
        rp_channel_put(&b->empty, b->current);
    b->current = NULL;
    if (rp_channel_take(&b->full, &item))
        b->current = item;
    return b->current != NULL;
}

const struct rp_json_block *rp_json_blocks_next(struct rp_json_blocks *b)
{
    if (b->current && b->current->stop != RP_JSON_STOP_NONE)
        return NULL;
    if (b->want_thread &&
        b->current) /* a small input is read completely before a thread would run */
        start_thread(b);
    if (b->running)
        return channel_next(b) ? b->current : NULL;
    b->current = &b->ring[0];
    fill_block(b, b->current);
    return b->current;
}

/* -------------------------------------------------------------------------- restart */

static bool hold_bytes(struct rp_json_blocks *b, const char *bytes, size_t n)
{
    char *held = realloc(b->held, b->held_n + n + 1);

    if (!held)
        return false;
    b->held = held;
    memcpy(held + b->held_n, bytes, n);
    b->held_n += n;
    return true;
}

/* Collects the content of the blocks from byte `from` of the current one on: everything up to their
 * cuts, the tail of the last one, and the bytes held before. */
static bool take_back(struct rp_json_blocks *b, size_t from)
{
    const struct rp_json_block *blk = b->current;
    char *rest = b->held;
    size_t rest_at = b->held_at, rest_n = b->held_n;
    void *item;
    bool ok;

    b->held = NULL;
    b->held_at = b->held_n = 0;
    do {
        const struct rp_json_block *after = NULL;
        if (b->full.slot && rp_channel_take(&b->full, &item))
            after = item;
        else if (blk != b->unsent)
            after = b->unsent;
        ok = hold_bytes(b, blk->text + from, (after ? blk->n : blk->filled) - from);
        blk = after;
        from = 0;
    } while (blk && ok);
    if (ok && rest)
        ok = hold_bytes(b, rest + rest_at, rest_n - rest_at);
    b->unsent = NULL;
    free(rest);
    return ok;
}

enum rp_code rp_json_blocks_restart(struct rp_json_blocks *b, size_t from, rp_json_find_fn *find,
                                    const void *user, bool *found, uint64_t *skipped)
{
    *found = false;
    if (!b->current)
        return RP_OK;
    uint64_t begin = b->current->offset + from, offset = begin;
    stop_thread(b);
    b->stop = RP_JSON_STOP_NONE;
    if (!take_back(b, from))
        return RP_NOMEM;
    b->current = NULL;
    b->last = NULL;
    b->tail_index_n = 0;
    b->state = (struct rp_json_index_state){0};
    b->chunk = b->chunk_max < AGAIN_CHUNK ? b->chunk_max : AGAIN_CHUNK;

    /* Searches what is held and then the input for the position; `taken` becomes its offset. */
    size_t at, keep, got;
    char piece[16 << 10];
    for (;;) {
        at = find(user, b->held, b->held_n, b->ended != RP_JSON_STOP_NONE, &keep);
        if (at < b->held_n || b->ended != RP_JSON_STOP_NONE || offset > b->input_max)
            break;
        offset += b->held_n - keep;
        memmove(b->held, b->held + b->held_n - keep, keep);
        b->held_n = keep;
        if (rp_input_read(b->in, piece, sizeof piece, &got, &b->err) != RP_OK)
            b->ended = RP_JSON_STOP_INPUT;
        else if (!got)
            b->ended = RP_JSON_STOP_END;
        else if (!hold_bytes(b, piece, got))
            return RP_NOMEM;
    }
    b->held_at = at;
    b->taken = offset + at;
    *found = at < b->held_n;
    *skipped = b->taken - begin;
    return RP_OK;
}

/* Reads one piece of the rest; *keep becomes false if it is too much to hold. */
static enum rp_code drain_piece(struct rp_json_blocks *b, bool *keep, struct rp_err *err)
{
    char piece[16 << 10];
    size_t got;

    if (rp_input_read(b->in, piece, sizeof piece, &got, &b->err) != RP_OK)
        b->ended = RP_JSON_STOP_INPUT;
    else if (!got)
        b->ended = RP_JSON_STOP_END;
    else if (*keep && b->held_n + got > DRAIN_KEEP)
        *keep = false;
    else if (*keep && !hold_bytes(b, piece, got))
        return rp_err_nomem(err, "checking the rest of an input");
    return RP_OK;
}

enum rp_code rp_json_blocks_drain(struct rp_json_blocks *b, bool keep, struct rp_err *err)
{
    bool kept = keep;

    stop_thread(b);
    while (b->ended == RP_JSON_STOP_NONE)
        RP_TRY(drain_piece(b, &kept, err));
    if (b->ended == RP_JSON_STOP_INPUT) {
        if (err)
            *err = b->err;
        return b->err.code;
    }
    if (rp_input_truncated(b->in))
        return rp_err_set_at(err, RP_FORMAT, b->taken, "the compressed input is cut short");
    if (keep && !kept)
        return rp_err_set_at(err, RP_LIMIT, b->taken,
                             "the text after the damage is too long to search");
    return RP_OK;
}

/* -------------------------------------------------------------------------- life */

enum rp_code rp_json_blocks_new(struct rp_input *in, const struct rp_json_options *options,
                                struct rp_json_blocks **out, struct rp_err *err)
{
    const struct rp_limits *limits = options->limits;
    struct rp_json_blocks *b = calloc(1, sizeof *b);

    *out = NULL;
    RP_TRY(rp_err_need(b, err, "opening JSON"));
    b->in = in;
    b->input_max = limits->input_bytes;
    b->token_max = limits->token_bytes < TOKEN_MAX ? limits->token_bytes : TOKEN_MAX;
    b->index = options->index ? options->index : rp_json_indexer_at(0)->run;
    b->chunk_max = options->block_bytes ? options->block_bytes : BLOCK;
    if (b->chunk_max > BLOCK_MAX)
        b->chunk_max = BLOCK_MAX;
    b->chunk = b->chunk_max < FIRST_CHUNK ? b->chunk_max : FIRST_CHUNK;
    b->want_thread = options->threaded && rp_cpu_count() > 1;
    if (!new_block(b)) {
        rp_json_blocks_free(b);
        return rp_err_nomem(err, "opening JSON");
    }
    *out = b;
    return RP_OK;
}

void rp_json_blocks_free(struct rp_json_blocks *b)
{
    if (!b)
        return;
    stop_thread(b);
    rp_channel_release(&b->full);
    rp_channel_release(&b->empty);
    for (size_t i = 0; i < RING; i++) {
        RP_EACH(free, b->ring[i].index, b->ring[i].text);
    }
    RP_EACH(free, b->held, b);
}

const struct rp_err *rp_json_blocks_borrow_error(const struct rp_json_blocks *b)
{
    return &b->err;
}
