/* SPDX-License-Identifier: Apache-2.0 */
/* Records and answers are blocks: their length in 8 bytes, then a part (result/part.c). Answers to
   other questions are skipped. */
#include "dataset/slot.h"

#include "result/part.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the tables */

#define STEP(member) RP_PART_PLAIN(struct rp_digest_step, member)
static const struct rp_field step_fields[] = {RP_PART_TEXT(struct rp_digest_step, name),
                                              STEP(number),
                                              STEP(begin_ns),
                                              STEP(end_ns),
                                              STEP(work_end_ns),
                                              STEP(requests),
                                              STEP(tokens),
                                              STEP(source),
                                              STEP(phase),
                                              STEP(flags),
                                              RP_PART_END};
static const struct rp_type step_type = {"digest_step", sizeof(struct rp_digest_step), step_fields,
                                         NULL};

#define DIGEST(member) RP_PART_PLAIN(struct rp_digest, member)
static const struct rp_field digest_fields[] = {RP_PART_TEXT(struct rp_digest, name),
                                                RP_PART_TEXT(struct rp_digest, format),
                                                RP_PART_TEXT(struct rp_digest, framework),
                                                DIGEST(rank),
                                                DIGEST(world_size),
                                                DIGEST(base_ns),
                                                DIGEST(has_base),
                                                DIGEST(nevents),
                                                RP_PART_BOOL(struct rp_digest, is_launcher),
                                                DIGEST(totals),
                                                DIGEST(health),
                                                RP_PART_LIST(struct rp_digest, steps, &step_type),
                                                RP_PART_END};
static const struct rp_type digest_type = {"digest", sizeof(struct rp_digest), digest_fields, NULL};

static const struct rp_field sketch_fields[] = {
    RP_PART_PLAIN(struct rp_sketch, device), RP_PART_PLAIN(struct rp_sketch, boot),
    RP_PART_PLAIN_VEC(struct rp_sketch, kernels, struct rp_sketch_name),
    RP_PART_PLAIN_VEC(struct rp_sketch, ops, struct rp_sketch_name), RP_PART_END};
static const struct rp_type sketch_type = {"sketch", sizeof(struct rp_sketch), sketch_fields, NULL};

#define GRAPHS(member) RP_PART_PLAIN(struct rp_graph_use, member)
static const struct rp_field graphs_fields[] = {GRAPHS(launches),
                                                GRAPHS(items),
                                                GRAPHS(ns),
                                                GRAPHS(matched),
                                                GRAPHS(matched_ns),
                                                GRAPHS(ambiguous),
                                                GRAPHS(unordered),
                                                GRAPHS(captured),
                                                GRAPHS(ran),
                                                GRAPHS(nused),
                                                RP_PART_TEXT(struct rp_graph_use, used),
                                                RP_PART_END};
static const struct rp_type graphs_type = {"graph_use", sizeof(struct rp_graph_use), graphs_fields,
                                           NULL};

#define TRUST(member) RP_PART_PLAIN(struct rp_trust_trace, member)
static const struct rp_field trust_fields[] = {TRUST(number),
                                               RP_PART_BOOL(struct rp_trust_trace, capture),
                                               RP_PART_BOOL(struct rp_trust_trace, cut_archive),
                                               TRUST(overwritten),
                                               TRUST(nevents),
                                               TRUST(health),
                                               RP_PART_TEXT(struct rp_trust_trace, cut),
                                               RP_PART_TEXT(struct rp_trust_trace, lost),
                                               RP_PART_TEXT(struct rp_trust_trace, set_back),
                                               RP_PART_TEXT(struct rp_trust_trace, died),
                                               TRUST(stopped_ns),
                                               RP_PART_END};
static const struct rp_type trust_type = {"trust_trace", sizeof(struct rp_trust_trace),
                                          trust_fields, NULL};

struct slot_record {
    const char *path;
    bool sketched, trusted;
    struct rp_digest digest;
    struct rp_sketch sketch;
    struct rp_trust_trace trust;
};

static const struct rp_field record_fields[] = {
    RP_PART_TEXT(struct slot_record, path),
    RP_PART_BOOL(struct slot_record, sketched),
    RP_PART_BOOL(struct slot_record, trusted),
    RP_PART_RECORD(struct slot_record, digest, &digest_type),
    RP_PART_RECORD(struct slot_record, sketch, &sketch_type),
    RP_PART_RECORD(struct slot_record, trust, &trust_type),
    RP_PART_END};
static const struct rp_type record_type = {"rank_record", sizeof(struct slot_record), record_fields,
                                           NULL};

/* The information that precedes a part. */
struct answer_head {
    const char *question;
    int64_t code;      /* RP_OK, or why there is no part */
    const char *error; /* then */
    bool left_out;     /* as in a part */
    struct rp_graph_use graphs;
    size_t nreads;
    struct rp_setting_read *reads;
};

static const struct rp_field answer_fields[] = {
    RP_PART_TEXT(struct answer_head, question),
    RP_PART_PLAIN(struct answer_head, code),
    RP_PART_TEXT(struct answer_head, error),
    RP_PART_BOOL(struct answer_head, left_out),
    RP_PART_RECORD(struct answer_head, graphs, &graphs_type),
    RP_PART_LIST(struct answer_head, reads, &rp_setting_read_type),
    RP_PART_END};
static const struct rp_type answer_type = {"answer", sizeof(struct answer_head), answer_fields,
                                           NULL};

/* ------------------------------------------------------------------ writing */

void rp_slot_free(struct rp_rank_slot *slot)
{
    if (!slot)
        return;
    rp_digest_free(slot->digest);
    if (!slot->arrived)
        rp_sketch_release(&slot->sketch);
    rp_arena_release(&slot->part.arena);
    free(slot);
}

/* Writes a part after its length, which is known only when the part is written. */
static enum rp_code write_block(const struct rp_type *type, const void *part, struct rp_out *to,
                                struct rp_err *err)
{
    struct rp_out *block = NULL;
    enum rp_code code = rp_out_open_memory(&block, err);
    size_t n;

    if (code == RP_OK) {
        rp_part_write(type, part, block);
        code = rp_out_flush(block, err);
    }
    if (code == RP_OK) {
        const char *bytes = rp_out_borrow_memory(block, &n);
        uint64_t length = n;
        rp_out_write(to, &length, sizeof length);
        rp_out_write(to, bytes, n);
    }
    rp_out_abandon(block);
    return code;
}

enum rp_code rp_slot_write(const struct rp_rank_slot *slot, const struct rp_trust_trace *trust,
                           struct rp_out *to, struct rp_err *err)
{
    struct slot_record record = {.path = slot->part.path,
                                 .sketched = slot->sketched,
                                 .trusted = trust != NULL,
                                 .digest = *slot->digest,
                                 .sketch = slot->sketch};

    if (trust)
        record.trust = *trust;
    return write_block(&record_type, &record, to, err);
}

enum rp_code rp_slot_write_answer(const struct rp_rank_part *part, const struct rp_asked *asked,
                                  const struct rp_settings_reads *reads,
                                  const struct rp_err *failure, struct rp_out *to,
                                  struct rp_err *err)
{
    static const uint64_t nothing = 0;
    struct rp_arena arena = RP_ARENA_INIT;
    struct answer_head head = {.question = asked->question,
                               .code = failure->code,
                               .error = failure->code == RP_OK ? NULL : failure->text,
                               .left_out = part->left_out,
                               .graphs = part->graphs,
                               .nreads = reads->n,
                               .reads = rp_settings_values(asked->settings, reads, &arena)};
    enum rp_code code = rp_err_need(head.reads, err, "writing a digest");

    if (code == RP_OK)
        code = write_block(&answer_type, &head, to, err);
    if (code == RP_OK && failure->code == RP_OK)
        code = write_block(asked->row->part, part->data, to, err);
    else
        rp_out_write(to, &nothing, sizeof nothing);
    rp_arena_release(&arena);
    return code;
}

/* ------------------------------------------------------------------ reading */

struct blocks {
    const char *at, *end;
};

static enum rp_code next_block(struct blocks *b, const char **bytes, size_t *n, struct rp_err *err)
{
    uint64_t length = 0;

    if ((size_t)(b->end - b->at) >= sizeof length)
        memcpy(&length, b->at, sizeof length);
    if ((size_t)(b->end - b->at) < sizeof length ||
        length > (size_t)(b->end - b->at) - sizeof length)
        return rp_err_set(err, RP_FORMAT, "the record of a rank is truncated");
    *bytes = b->at + sizeof length;
    *n = (size_t)length;
    b->at = *bytes + *n;
    return RP_OK;
}

static enum rp_code read_block(struct blocks *b, const struct rp_type *type, struct rp_arena *arena,
                               void *out, struct rp_err *err)
{
    const char *bytes = NULL;
    size_t n = 0;

    RP_TRY(next_block(b, &bytes, &n, err));
    return rp_part_read(type, bytes, n, arena, out, err);
}

/* Checks the texts that every writer sets. */
static enum rp_code check_record(const struct slot_record *record, struct rp_err *err)
{
    const struct rp_digest *d = &record->digest;
    bool whole = record->path && d->name && d->format && d->framework &&
                 memchr(record->sketch.device, 0, sizeof record->sketch.device);

    for (size_t i = 0; i < d->nsteps && whole; i++)
        whole = d->steps[i].name != NULL;
    return whole ? RP_OK : rp_err_set(err, RP_FORMAT, "the record of a rank is damaged");
}

/* The digest owns what it, the sketch and the remarks point to. */
static enum rp_code read_record(struct blocks *b, struct rp_rank_slot *out,
                                struct rp_trust_trace *trust, struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct slot_record record;
    enum rp_code code = read_block(b, &record_type, &arena, &record, err);

    out->arrived = true;
    if (code == RP_OK)
        code = check_record(&record, err);
    out->digest = code == RP_OK ? calloc(1, sizeof *out->digest) : NULL;
    if (!out->digest) {
        rp_arena_release(&arena);
        return code == RP_OK ? rp_err_nomem(err, "reading a digest") : code;
    }
    *out->digest = record.digest;
    out->digest->arena = arena;
    out->sketch = record.sketch;
    out->sketched = record.sketched;
    out->part.path = rp_arena_text(&out->part.arena, record.path);
    *trust = record.trust;
    trust->path = record.trusted ? record.path : NULL;
    return RP_OK;
}

enum rp_code rp_digest_copy(const struct rp_digest *digest, struct rp_digest **out,
                            struct rp_err *err)
{
    struct rp_digest *copy = calloc(1, sizeof *copy);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_out *bytes = NULL;
    enum rp_code code =
        copy ? rp_out_open_memory(&bytes, err) : rp_err_nomem(err, "copying a digest");
    size_t n;

    if (code == RP_OK) {
        rp_part_write(&digest_type, digest, bytes);
        code = rp_out_flush(bytes, err);
    }
    if (code == RP_OK) {
        const char *at = rp_out_borrow_memory(bytes, &n);
        code = rp_part_read(&digest_type, at, n, &arena, copy, err);
    }
    rp_out_abandon(bytes);
    if (code != RP_OK) {
        rp_arena_release(&arena);
        free(copy);
        return code;
    }
    copy->arena = arena;
    *out = copy;
    return RP_OK;
}

/* Skips answers until one fits. */
static enum rp_code find_answer(struct blocks *b, const struct rp_asked *asked,
                                struct rp_arena *arena, struct answer_head *head, bool *missing,
                                struct rp_err *err)
{
    const char *bytes = NULL;
    bool same = false;
    size_t n = 0;

    *missing = false;
    while (b->at < b->end) {
        RP_TRY(read_block(b, &answer_type, arena, head, err));
        if (!head->question)
            return rp_err_set(err, RP_FORMAT, "an answer has no name");
        if (!strcmp(head->question, asked->question)) {
            if (rp_settings_agree(asked->settings, head->reads, head->nreads))
                return RP_OK;
            same = true;
        }
        RP_TRY(next_block(b, &bytes, &n, err));
    }
    *missing = true;
    return rp_err_set(err, RP_USAGE, "was made %s '%s'",
                      same ? "with other options of" : "without the answer to", asked->question);
}

enum rp_code rp_slot_read(const struct rp_asked *asked, const char *bytes, size_t n,
                          struct rp_rank_slot *out, struct rp_trust_trace *trust, bool *missing,
                          struct rp_err *err)
{
    struct blocks b = {bytes, bytes + n};
    struct answer_head head = {0};

    *missing = false;
    RP_TRY(read_record(&b, out, trust, err));
    RP_TRY(rp_arena_check(&out->part.arena, "reading a digest", err));
    RP_TRY(find_answer(&b, asked, &out->part.arena, &head, missing, err));
    if (head.code != RP_OK)
        return rp_err_set(err, (enum rp_code)head.code, "%s", head.error ? head.error : "");
    out->part.graphs = head.graphs;
    out->part.left_out = head.left_out;
    out->part.data =
        rp_arena_alloc(&out->part.arena, asked->row->part->size, _Alignof(max_align_t));
    RP_TRY(rp_err_need(out->part.data, err, "reading a digest"));
    return read_block(&b, asked->row->part, &out->part.arena, out->part.data, err);
}
