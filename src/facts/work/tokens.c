/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/work/tokens.h"

#include "base/hash.h"

static const char *const names[] = {"grid", "block", "bytes"};
enum { KEYS = sizeof names / sizeof names[0] };

enum rp_code rp_work_tokens_init(struct rp_work_tokens *out, const struct rp_trace *trace,
                                 struct rp_err *err)
{
    *out = (struct rp_work_tokens){.trace = trace};
    for (size_t i = 0; i < KEYS; i++)
        RP_TRY(rp_arg_key_init(&out->keys[i], trace, names[i], err));
    return rp_arg_key_init_dims(&out->dims, trace, err);
}

void rp_work_tokens_release(struct rp_work_tokens *tokens)
{
    for (size_t i = 0; i < KEYS; i++)
        rp_arg_key_release(&tokens->keys[i]);
    rp_arg_key_release(&tokens->dims);
}

static uint64_t join_arg(const struct rp_arg_key *key, rp_event e, uint64_t hash)
{
    int64_t number;
    rp_str text;

    if (rp_arg_key_text(key, e, &text))
        return rp_hash_join(hash, text);
    return rp_arg_key_int(key, e, &number) ? rp_hash_join(hash, (uint64_t)number) : hash;
}

uint64_t rp_work_token(const struct rp_work_tokens *tokens, const struct rp_work_item *item,
                       rp_event op)
{
    uint64_t hash = rp_hash_u64(tokens->trace->ev.name[item->event]);

    for (size_t i = 0; i < KEYS; i++)
        hash = join_arg(&tokens->keys[i], item->event, hash);
    return op == RP_NONE ? hash : join_arg(&tokens->dims, op, hash);
}
