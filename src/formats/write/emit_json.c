/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A string is checked once, when it is first written, and a byte remembers whether it can be
 * copied, which is true of most. Keys of argument columns are made beforehand.
 */
#include "formats/write/emit_json.h"
#include "io/escaped.h"
#include "io/json_strict.h"

#include <math.h>
#include <stdlib.h>

enum { TEXT_PLAIN = 1, TEXT_ESCAPED = 2, RAW_PLAIN = 4, RAW_UNCLEAN = 8, RAW_BROKEN = 16 };
#define TEXT_SEEN (TEXT_PLAIN | TEXT_ESCAPED)
#define RAW_SEEN  (RAW_PLAIN | RAW_UNCLEAN | RAW_BROKEN)

enum rp_code rp_pieces_init(struct rp_pieces *p, uint32_t n, struct rp_err *err)
{
    *p = (struct rp_pieces){.cap = n};
    RP_TRY(rp_emit_open_memory(&p->text, err));
    p->offset = calloc((size_t)n + 1, sizeof *p->offset);
    if (!p->offset) {
        rp_pieces_release(p);
        return rp_err_nomem(err, "writing text");
    }
    return RP_OK;
}

void rp_pieces_end(struct rp_pieces *p)
{
    size_t length = rp_emit_length(&p->text);

    if (length > UINT32_MAX && p->text.failure.code == RP_OK)
        rp_err_set(&p->text.failure, RP_LIMIT, "more than 4 GiB of names");
    if (p->n < p->cap)
        p->offset[++p->n] = (uint32_t)length;
}

enum rp_code rp_pieces_check(const struct rp_pieces *p, struct rp_err *err)
{
    if (p->text.failure.code != RP_OK && err)
        *err = p->text.failure;
    return p->text.failure.code;
}

void rp_pieces_release(struct rp_pieces *p)
{
    rp_emit_abandon(&p->text);
    free(p->offset);
    *p = (struct rp_pieces){0};
}

enum rp_code rp_emit_json_init(struct rp_emit_json *j, const struct rp_trace *trace,
                               struct rp_err *err)
{
    *j = (struct rp_emit_json){.trace = trace};
    RP_TRY(rp_pieces_init(&j->keys, trace->args.nkeys, err));
    j->seen = calloc((size_t)trace->str.n + 1, 1);
    if (!j->seen) {
        rp_emit_json_release(j);
        return rp_err_nomem(err, "writing text");
    }
    for (uint32_t i = 0; i < trace->args.nkeys; i++) {
        rp_emit_char(&j->keys.text, ',');
        rp_emit_json_str(&j->keys.text, j, trace->args.key_name[i]);
        rp_emit_char(&j->keys.text, ':');
        rp_pieces_end(&j->keys);
    }
    enum rp_code code = rp_pieces_check(&j->keys, err);
    if (code != RP_OK)
        rp_emit_json_release(j);
    return code;
}

void rp_emit_json_release(struct rp_emit_json *j)
{
    rp_pieces_release(&j->keys);
    free(j->seen);
    *j = (struct rp_emit_json){0};
}

void rp_emit_json_str(struct rp_emit *e, struct rp_emit_json *j, rp_str s)
{
    const char *bytes = rp_trace_str(j->trace, s);
    size_t n = rp_trace_str_len(j->trace, s);

    if (!(j->seen[s] & TEXT_SEEN))
        j->seen[s] |= rp_escape_needless(RP_IN_JSON, bytes, n) ? TEXT_PLAIN : TEXT_ESCAPED;
    if (j->seen[s] & TEXT_ESCAPED) {
        rp_emit_escaped(e, RP_IN_JSON, bytes, n);
        return;
    }
    rp_emit_char(e, '"');
    rp_emit_bytes(e, bytes, n);
    rp_emit_char(e, '"');
}

void rp_emit_json_raw(struct rp_emit *e, struct rp_emit_json *j, rp_str s)
{
    const char *bytes = rp_trace_str(j->trace, s);
    size_t n = rp_trace_str_len(j->trace, s);

    if (!(j->seen[s] & RAW_SEEN)) {
        static const uint8_t known[] = {[RP_RAW_CLEAN] = RAW_PLAIN,
                                        [RP_RAW_UNCLEAN] = RAW_UNCLEAN,
                                        [RP_RAW_BROKEN] = RAW_BROKEN};

        j->seen[s] |= known[rp_json_raw_check(bytes, n)];
    }
    if (j->seen[s] & RAW_PLAIN)
        rp_emit_bytes(e, bytes, n);
    else if (j->seen[s] & RAW_UNCLEAN)
        rp_json_put_cleaned(e, bytes, n);
    else
        rp_emit_json_str(e, j, s);
}

static void put_double(struct rp_emit *e, int64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    if (isnan(v))
        rp_emit_text(e, "\"NaN\"");
    else if (isinf(v))
        rp_emit_text(e, v < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else
        e->at = rp_put_f64(rp_emit_room(e, RP_PUT_F64_MAX), v);
}

static void put_value(struct rp_emit *e, struct rp_emit_json *j, uint8_t type, int64_t bits)
{
    switch (type) {
    case RP_ARG_I64:
        rp_emit_i64(e, bits);
        break;
    case RP_ARG_F64:
        put_double(e, bits);
        break;
    case RP_ARG_STR:
        rp_emit_json_str(e, j, (rp_str)bits);
        break;
    default:
        rp_emit_json_raw(e, j, (rp_str)bits);
        break;
    }
}

void rp_emit_json_args(struct rp_emit *e, struct rp_emit_json *j, uint16_t shape, uint32_t row)
{
    const struct rp_args *args = &j->trace->args;

    rp_emit_char(e, '{');
    if (shape == RP_SHAPE_SPILLED) {
        /* Arguments that are not stored by shape. */
        for (uint32_t i = args->spill_offset[row]; i < args->spill_offset[row + 1]; i++) {
            const struct rp_spilled *arg = &args->spill[i];
            if (i != args->spill_offset[row])
                rp_emit_char(e, ',');
            rp_emit_json_str(e, j, arg->key);
            rp_emit_char(e, ':');
            put_value(e, j, (uint8_t)arg->type, arg->value);
        }
    } else if (shape) {
        uint32_t first = args->shape[shape].first_key, end = first + args->shape[shape].nkeys;

        for (uint32_t c = first; c < end; c++) {
            size_t len, comma = c == first;
            const char *key = rp_piece(&j->keys, c, &len);

            rp_emit_bytes(e, key + comma, len - comma);
            put_value(e, j, args->key_type[c], rp_args_cell(args, c, row));
        }
    }
    rp_emit_char(e, '}');
}
