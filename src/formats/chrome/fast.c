/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast path for events that look like earlier ones. A profiler writes millions of events with a few
 * formats: the text between the values is the same to the byte. It is learnt as a tree of templates
 * (chrome.h) from events that were read field by field; then an event is a few comparisons of
 * memory with the values in between, and no key is examined. An event that does not fit (another
 * key, an escape, an unusual number, an event across two blocks) is read field by field.
 *
 * All checks of the parser are kept: a literal was parsed when it was learnt, numbers are scanned
 * here, raw JSON is either text that was parsed before or is parsed now. The position in the
 * structural index advances too, as equal text has equal entries.
 *
 * Learning an event costs about a microsecond; it stops for files in which it does not pay
 * (credit).
 */
#include "formats/chrome/chrome.h"

#define MAX_STEPS    32768
#define MAX_CHILDREN 32
#define MAX_LITERAL  2048
#define CREDIT       4096 /* initial and maximum */
#define PRICE        16   /* price of learning an event, in credit */

#define BIT(field) (1u << (field))

/* -------------------------------------------------------------------------- learning */

enum rp_code rp_chrome_learn_init(struct rp_chrome *r, struct rp_err *err)
{
    struct rp_chrome_step root = {0};

    r->learn.credit = CREDIT;
    return rp_vec_push(&r->learn.steps, root, err);
}

void rp_chrome_learn_release(struct rp_chrome *r)
{
    rp_vec_release(&r->learn.steps);
    rp_vec_release(&r->learn.events);
    rp_vec_release(&r->learn.marks);
}

void rp_chrome_learn_event(struct rp_chrome *r)
{
    struct rp_chrome_learn *l = &r->learn;

    l->block = l->credit >= PRICE && l->steps.n < MAX_STEPS ? r->json->offset : UINT64_MAX;
    l->begin = r->json->at;
    l->index = r->json->ix;
    l->marks.n = 0;
}

enum rp_code rp_chrome_learn_value(struct rp_chrome *r, uint8_t field,
                                   const struct rp_json_token *v, uint8_t type, rp_str key,
                                   struct rp_err *err)
{
    struct rp_chrome_learn *l = &r->learn;
    struct rp_chrome_mark mark = {.begin = l->at,
                                  .end = v->text + v->len + (v->kind == RP_JSON_STRING),
                                  .index = l->at_index,
                                  .index_end = r->json->ix,
                                  .key = key,
                                  .field = field,
                                  .type = type};

    if (l->block != r->json->offset) /* no event is being learned, or it began in another block */
        return RP_OK;
    return rp_vec_push(&l->marks, mark, err);
}

static bool fits(const struct rp_chrome_step *s, const struct rp_chrome_step *want)
{
    return s->len == want->len && s->behind == want->behind && s->field == want->field &&
           s->key == want->key && s->literal && want->literal &&
           memcmp(s->literal, want->literal, s->len) == 0;
}

/* Moves *step to its child like `want`, which is added if missing; sets it to 0 if there is no
   room. */
static enum rp_code enter_step(struct rp_chrome *r, uint32_t *step,
                               const struct rp_chrome_step *want, bool *ok, struct rp_err *err)
{
    struct rp_chrome_learn *l = &r->learn;
    struct rp_chrome_step *parent = &l->steps.at[*step], *s;
    uint32_t i;

    for (i = parent->first; i; i = l->steps.at[i].next)
        if (fits(&l->steps.at[i], want)) {
            *step = i;
            return RP_OK;
        }
    *ok = want->len <= MAX_LITERAL && parent->nchildren < MAX_CHILDREN && l->steps.n < MAX_STEPS;
    if (!*ok)
        return RP_OK;
    RP_TRY(rp_vec_push(&l->steps, *want, err));
    parent = &l->steps.at[*step];
    i = (uint32_t)l->steps.n - 1;
    s = &l->steps.at[i];
    s->literal = rp_arena_copy(&r->arena, want->literal, want->len);
    if (!s->literal) {
        l->steps.n--;
        return rp_err_nomem(err, "learning events");
    }
    s->next = parent->first;
    parent->first = parent->hot = i;
    parent->nchildren++;
    *step = i;
    return RP_OK;
}

static bool is_correlation(const struct rp_chrome *r, const struct rp_chrome_mark *mark)
{
    size_t len;
    const char *s = rp_builder_borrow_str(r->builder, mark->key, &len);

    return mark->field == RP_CHROME_ARGS && len == 11 && memcmp(s, "correlation", 11) == 0;
}

/* Adds the steps of the event that was marked. */
static enum rp_code learn_steps(struct rp_chrome *r, const struct rp_chrome_event *e,
                                struct rp_err *err)
{
    struct rp_chrome_learn *l = &r->learn;
    const char *at = l->begin;
    const uint32_t *index = l->index;
    uint32_t step = 0;
    uint8_t behind = 0;
    bool ok = true;

    for (size_t i = 0; i <= l->marks.n && ok; i++) {
        struct rp_chrome_mark last = {.begin = r->json->at, .index = r->json->ix};
        const struct rp_chrome_mark *m = i < l->marks.n ? &l->marks.at[i] : &last;
        struct rp_chrome_step want = {.literal = at,
                                      .len = (uint32_t)(m->begin - at),
                                      .nindex = (uint32_t)(m->index - index),
                                      .field = i < l->marks.n ? m->field : RP_CHROME_END,
                                      .behind = behind,
                                      .key = m->key,
                                      .event = RP_NONE,
                                      .is_correlation = is_correlation(r, m)};

        RP_TRY(enter_step(r, &step, &want, &ok, err));
        at = m->end;
        index = m->index_end;
        behind = m->type;
    }
    if (!ok || l->steps.at[step].event != RP_NONE)
        return RP_OK;
    l->steps.at[step].event = (uint32_t)l->events.n;
    return rp_vec_push(&l->events, *e, err);
}

enum rp_code rp_chrome_learn_end(struct rp_chrome *r, const struct rp_chrome_event *e,
                                 struct rp_err *err)
{
    struct rp_chrome_learn *l = &r->learn;
    uint32_t nargs = 0;

    if (l->block != r->json->offset)
        return RP_OK;
    for (size_t i = 0; i < l->marks.n; i++)
        nargs += l->marks.at[i].field == RP_CHROME_ARGS;
    if (nargs != e->args.n || nargs > RP_SHAPE_KEYS || e->duplicates || e->args.duplicates ||
        e->huge_times || e->rounded)
        return RP_OK;
    l->credit -= PRICE;
    return learn_steps(r, e, err);
}

/* -------------------------------------------------------------------------- reading */

struct values { /* the values of one event; `seen` tells which are set */
    int64_t ts_ns, dur_ns;
    struct rp_chrome_args args; /* the correlation only */
    struct rp_chrome_ident pid, tid, id;
    rp_str name;
    uint32_t seen;
    bool fraction;
};

struct walk {
    struct rp_chrome *r;
    const char *at;
    const uint32_t *ix;
    const char *last8; /* the last position from which 8 bytes can be read */
    uint32_t nargs;
    uint8_t type; /* type of the last argument, 0 after other values */
    enum rp_code code;
    struct rp_err *err;
    struct values v;
};

/* memcmp(a, b, n) == 0, without the cost of a call: literals are 5 to 50 bytes. */
static inline bool same_bytes(const char *a, const char *b, size_t n)
{
    uint64_t x, y;

    if (n < 8) {
        while (n && a[n - 1] == b[n - 1])
            n--;
        return n == 0;
    }
    for (; n > 8; n -= 8, a += 8, b += 8) {
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        if (x != y)
            return false;
    }
    memcpy(&x, a + n - 8, 8); /* overlaps bytes that were compared already */
    memcpy(&y, b + n - 8, 8);
    return x == y;
}

static bool step_fits(const struct walk *w, const struct rp_chrome_step *s, size_t left)
{
    return s->behind == w->type && s->len <= left && same_bytes(s->literal, w->at, s->len);
}

/* The child of this step that the text matches, or 0. */
static uint32_t next_step(const struct walk *w, uint32_t step)
{
    struct rp_chrome_step *steps = w->r->learn.steps.at;
    size_t left = (size_t)(w->r->json->end - w->at);
    uint32_t i = steps[step].hot;

    if (i && step_fits(w, &steps[i], left))
        return i;
    for (i = steps[step].first; i; i = steps[i].next)
        if (step_fits(w, &steps[i], left)) {
            steps[step].hot = i;
            return i;
        }
    return 0;
}

/* Whether a scalar that ends here is followed by a comma or bracket, maybe after white space. */
static inline bool ends_at(const struct walk *w, const char *end)
{
    const char *stop = w->r->json->text + *w->ix;

    return end == stop || rp_json_space(end) == stop;
}

/* The value of the 8 bytes at `at`, if all of them are digits. */
static inline bool eight_digits(const char *at, uint64_t *value)
{
    uint64_t x;

    memcpy(&x, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    x ^= UINT64_C(0x3030303030303030);
    if ((((x & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7676767676767676)) | x) &
        UINT64_C(0x8080808080808080))
        return false;
    x = x * 10 + (x >> 8); /* joins pairs, then fours, then all eight digits */
    *value = ((x & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
              (x >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
             32;
    return true;
}

/* Reads a whole number of up to 18 digits. */
static bool read_integer(struct walk *w, int64_t *out)
{
    const char *digit = w->at + (*w->at == '-'), *at = digit;
    uint64_t v = 0;

    for (; (unsigned char)(*at - '0') < 10; at++)
        v = v * 10 + (uint64_t)(*at - '0');
    if (at == digit || at - digit > 18 || (*digit == '0' && (at - digit > 1 || digit != w->at)) ||
        !ends_at(w, at))
        return false;
    *out = digit != w->at ? -(int64_t)v : (int64_t)v;
    w->at = at;
    return true;
}

/* Reads microseconds with up to three decimals. */
static bool read_time(struct walk *w, int64_t *out, bool *fraction)
{
    static const uint64_t scale[] = {1000, 100, 10, 1};
    const char *at = w->at, *dot;
    uint64_t v = 0, whole;

    if (at <= w->last8 && eight_digits(at, &v))
        at += 8;
    for (; (unsigned char)(*at - '0') < 10; at++)
        v = v * 10 + (uint64_t)(*at - '0');
    if (at == w->at || at - w->at > 15 || (*w->at == '0' && at - w->at > 1))
        return false;
    whole = v * 1000;
    dot = at;
    if (*at == '.') {
        for (at++; (unsigned char)(*at - '0') < 10 && at - dot < 5; at++)
            v = v * 10 + (uint64_t)(*at - '0');
        if (at - dot < 2 || at - dot > 4)
            return false;
        v *= scale[at - dot - 1];
    } else {
        v = whole;
    }
    if (!ends_at(w, at))
        return false;
    *fraction = v != whole;
    *out = (int64_t)v;
    w->at = at;
    return true;
}

/* Reads a string without escapes. */
static bool read_text(struct walk *w, struct rp_json_token *v)
{
    const struct rp_json *p = w->r->json;
    const char *close = p->text + w->ix[1];

    if (*w->at != '"' || *close != '"')
        return false;
    *v = (struct rp_json_token){
        .text = w->at + 1, .len = (uint32_t)(close - w->at - 1), .kind = RP_JSON_STRING};
    if (v->len > p->token_max || (!p->plain && memchr(v->text, '\\', v->len)))
        return false;
    w->at = close + 1;
    w->ix += 2;
    return true;
}

static bool read_ident(struct walk *w, struct rp_chrome_ident *to, bool numeric)
{
    struct rp_json_token v;

    *to = (struct rp_chrome_ident){.given = true};
    if (*w->at != '"')
        return read_integer(w, &to->number);
    if (!read_text(w, &v))
        return false;
    w->code = rp_chrome_set_ident(w->r, to, &v, numeric, w->err);
    return w->code == RP_OK;
}

/* The end of the container at w->at, whose first index entry is *ix; NULL if it does not end in
   this block. */
static const char *container_end(const struct walk *w, const uint32_t **ix)
{
    const struct rp_json *p = w->r->json;
    const uint32_t *i = *ix;
    unsigned depth = 0;

    for (; i < p->ix_end; i++) {
        char c = p->text[*i];

        if (c == '"') {
            i++;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c != ',' && --depth == 0) {
            *ix = i + 1;
            return p->text + *i + 1;
        }
    }
    return NULL;
}

/* Text that was parsed before is not parsed again. */
static bool read_container(struct walk *w, struct rp_arg *arg)
{
    struct rp_json *p = w->r->json;
    const uint32_t *ix = w->ix;
    const char *end = container_end(w, &ix);
    struct rp_json_token v;

    if (!end)
        return false;
    arg->v.s = rp_chrome_known_raw(w->r, w->at, (size_t)(end - w->at));
    if (!arg->v.s) {
        p->at = w->at;
        p->ix = w->ix;
        if (!rp_json_raw(p, &v) || p->at != end)
            return false;
        w->code = rp_chrome_intern_raw(w->r, v.text, v.len, &arg->v.s, w->err);
    }
    w->at = end;
    w->ix = ix;
    return w->code == RP_OK;
}

static bool read_word(struct walk *w, struct rp_arg *arg)
{
    size_t len = *w->at == 'f' ? 5 : 4;

    if (memcmp(w->at,
               *w->at == 't'   ? "true"
               : *w->at == 'n' ? "null"
                               : "false",
               len) != 0 ||
        !ends_at(w, w->at + len))
        return false;
    w->code = rp_chrome_intern_raw(w->r, w->at, len, &arg->v.s, w->err);
    w->at += len;
    return w->code == RP_OK;
}

static bool read_double(struct walk *w, struct rp_arg *arg)
{
    const char *at = rp_json_digits(w->at + (*w->at == '-')), *dot = at;

    if (*dot != '.' || (at = rp_json_digits(dot + 1)) == dot + 1 || !ends_at(w, at) ||
        (dot[-1] == '0' && (w->at[*w->at == '-'] == '0') && dot - w->at > 1 + (*w->at == '-')) ||
        dot == w->at + (*w->at == '-') ||
        !rp_chrome_parse_double(w->r, w->at, (size_t)(at - w->at), &arg->v.f))
        return false;
    w->at = at;
    return true;
}

static bool read_arg_text(struct walk *w, struct rp_chrome_memo *memo, struct rp_arg *arg)
{
    struct rp_json_token v;

    if (!read_text(w, &v))
        return false;
    if (rp_chrome_recall(w->r, memo, v.text, v.len)) {
        arg->v.s = memo->str;
        return true;
    }
    w->code = rp_chrome_intern_name(w->r, &v, &arg->v.s, w->err);
    *memo = (struct rp_chrome_memo){.str = arg->v.s, .len = v.len};
    return w->code == RP_OK;
}

static bool read_arg(struct walk *w, struct rp_chrome_step *s)
{
    struct rp_arg arg = {.key = s->key};
    struct rp_json_token v = {.text = w->at};
    bool ok;

    switch (*w->at) {
    case '"':
        arg.type = RP_ARG_STR;
        ok = read_arg_text(w, &s->memo, &arg);
        break;
    case '[':
    case '{':
        arg.type = RP_ARG_RAW;
        ok = read_container(w, &arg);
        break;
    case 't':
    case 'f':
    case 'n':
        arg.type = RP_ARG_RAW;
        ok = read_word(w, &arg);
        break;
    default:
        arg.type = RP_ARG_I64;
        ok = read_integer(w, &arg.v.i);
        if (!ok) {
            arg.type = RP_ARG_F64;
            ok = read_double(w, &arg);
        }
    }
    if (!ok || w->nargs >= w->r->args.cap)
        return false;
    if (s->is_correlation) {
        v.len = (uint32_t)(w->at - v.text);
        w->code = rp_chrome_set_correlation(w->r, &arg, &v, &w->v.args, w->err);
        if (w->code != RP_OK)
            return false;
    }
    w->type = arg.type;
    w->r->args.at[w->nargs++] = arg;
    return true;
}

/* Reads the value after a step; false if it does not fit. */
static bool read_value(struct walk *w, struct rp_chrome_step *s)
{
    struct rp_json_token v;
    bool ignored;

    w->type = 0;
    w->v.seen |= BIT(s->field);
    switch (s->field) {
    case RP_CHROME_NAME:
        if (!read_text(w, &v))
            return false;
        w->code = rp_chrome_intern_name(w->r, &v, &w->v.name, w->err);
        return w->code == RP_OK;
    case RP_CHROME_PID:
        return read_ident(w, &w->v.pid, false);
    case RP_CHROME_TID:
        return read_ident(w, &w->v.tid, false);
    case RP_CHROME_ID:
        return read_ident(w, &w->v.id, true);
    case RP_CHROME_TS:
        return read_time(w, &w->v.ts_ns, &w->v.fraction);
    case RP_CHROME_DUR:
        return read_time(w, &w->v.dur_ns, &ignored);
    default:
        return read_arg(w, s);
    }
}

/* Puts the values of this event into a copy of the template's event. */
static void complete_event(const struct values *v, struct rp_chrome_event *e)
{
    if (v->seen & BIT(RP_CHROME_NAME))
        e->name = v->name;
    if (v->seen & BIT(RP_CHROME_PID))
        e->pid = v->pid;
    if (v->seen & BIT(RP_CHROME_TID))
        e->tid = v->tid;
    if (v->seen & BIT(RP_CHROME_ID))
        e->id = v->id;
    if (v->seen & BIT(RP_CHROME_TS)) {
        e->ts_ns = v->ts_ns;
        e->fraction = v->fraction;
    }
    if (v->seen & BIT(RP_CHROME_DUR))
        e->dur_ns = v->dur_ns;
    e->args.has_correlation = v->args.has_correlation;
    e->args.correlation_is_text = v->args.correlation_is_text;
    e->args.correlation = v->args.correlation;
}

/* Follows the tree from the '{' to after the '}'; returns 0 if the event does not fit. */
static uint32_t walk_event(struct walk *w)
{
    uint32_t step = 0;

    while ((step = next_step(w, step))) {
        struct rp_chrome_step *s = &w->r->learn.steps.at[step];
        w->at += s->len;
        w->ix += s->nindex;
        if (s->field == RP_CHROME_END)
            return s->event == RP_NONE ? 0 : step;
        if (!read_value(w, s))
            return 0;
    }
    return 0;
}

bool rp_chrome_read_fast(struct rp_chrome *r, enum rp_code *code, struct rp_err *err)
{
    struct rp_json *p = r->json;
    const char *at = p->at;
    const uint32_t *ix = p->ix;
    struct walk w = {.r = r, .at = at, .ix = ix, .err = err};

    if (p->end - p->text < 8)
        return false;
    w.last8 = p->end - 8;
    uint32_t step = walk_event(&w);
    *code = w.code;
    if (!step) {
        if (w.code != RP_OK || rp_json_failed(p))
            return true;
        p->at = at;
        p->ix = ix;
        return false;
    }
    p->at = w.at;
    p->ix = w.ix;
    r->learn.credit += r->learn.credit < CREDIT;
    struct rp_chrome_event e = r->learn.events.at[r->learn.steps.at[step].event];
    complete_event(&w.v, &e);
    *code = rp_chrome_add(r, &e, err);
    return true;
}
