/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON pull parser. The first byte chooses the block size and the thread, the second how the
 * text is read and the limits; the rest is the text. It is read twice, in tiny blocks with the
 * fastest index and in one block with the plain one: what comes out must be the same.
 */
#include "base/hash.h"
#include "io/json_pull.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    SKIP = 1,    /* pass the whole value at once */
    RAW = 2,     /* the values of the first level as raw text */
    SALVAGE = 4, /* go on after errors */
    SMALL = 8,   /* small limits */
    DECODE = 16
};

struct outcome {
    uint64_t hash, offset, non_finite;
    enum rp_code code;
    bool early;
};

static void note(struct outcome *o, const void *bytes, size_t n)
{
    o->hash = rp_hash_mix(o->hash ^ rp_hash_bytes(bytes, n), UINT64_C(0x9e3779b97f4a7c15));
}

static void note_token(struct outcome *o, struct rp_json *p, struct rp_json_token *t, unsigned how)
{
    uint8_t facts[3] = {t->kind, t->has_escapes, t->is_integer};

    note(o, facts, sizeof facts);
    if ((how & DECODE) && !rp_json_decode(p, t))
        return;
    note(o, t->text, t->len);
}

static void read_value(struct outcome *o, struct rp_json *p, unsigned how)
{
    struct rp_json_token t;

    if (how & SKIP)
        rp_json_skip(p);
    else if ((how & RAW) && rp_json_depth(p) ? rp_json_raw(p, &t) : rp_json_value(p, &t) != 0)
        note_token(o, p, &t, how);
}

static void read_all(struct outcome *o, struct rp_json *p, unsigned how)
{
    struct rp_json_token key;
    uint64_t skipped, at = 0;

    read_value(o, p, how);
    for (;;) {
        while (rp_json_depth(p) && !rp_json_failed(p)) {
            bool object = rp_json_in_object(p);
            bool more = object ? rp_json_field(p, &key) : rp_json_element(p);

            if (more && object)
                note_token(o, p, &key, how & ~(unsigned)DECODE);
            if (more)
                read_value(o, p, how);
        }
        if (!(how & SALVAGE) || !rp_json_failed(p) || !rp_json_resync(p, 1, NULL, &skipped))
            return;
        note(o, &skipped, sizeof skipped);
        if (rp_json_offset(p) <= at) /* it must get on */
            __builtin_trap();
        at = rp_json_offset(p);
    }
}

static struct outcome run(const uint8_t *data, size_t size, const struct rp_json_options *options,
                          unsigned how)
{
    struct outcome o = {0};
    struct rp_input *in = NULL;
    struct rp_json *p = NULL;
    struct rp_err err;

    o.code = rp_input_open_memory("fuzz", data, size, NULL, &in, &err);
    if (o.code == RP_OK)
        o.code = rp_json_open(in, options, &p, &err);
    if (o.code == RP_OK) {
        read_all(&o, p, how);
        o.code = rp_json_finish(p, &err);
        o.offset = rp_json_offset(p);
        o.early = rp_json_ended_early(p);
        o.non_finite = rp_json_stats(p).non_finite;
    }
    rp_json_close(p);
    rp_input_close(in);
    return o;
}

static void compare(const struct outcome *a, const struct outcome *b, bool tokens)
{
    if (a->code == RP_NOMEM || b->code == RP_NOMEM)
        return;
    if (a->code != b->code || a->offset != b->offset || a->early != b->early)
        __builtin_trap();
    if (tokens && (a->hash != b->hash || a->non_finite != b->non_finite))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_json_options tiny = {.limits = &limits}, whole = {.limits = &limits};
    struct outcome a, b;
    unsigned how;

    if (size < 2)
        return 0;
    tiny.block_bytes = 1 + (data[0] & 63);
    tiny.threaded = data[0] >> 6 & 1;
    whole.index = rp_json_index_scalar;
    how = data[1];
    if (how & SMALL) {
        limits.token_bytes = 16;
        limits.depth = 5;
    }
    a = run(data + 2, size - 2, &tiny, how);
    b = run(data + 2, size - 2, &whole, how);
    compare(&a, &b, true);
    if (!(how & (RAW | SALVAGE))) { /* skipping finds the same errors as reading */
        b = run(data + 2, size - 2, &whole, how ^ SKIP);
        compare(&a, &b, false);
    }
    return 0;
}
