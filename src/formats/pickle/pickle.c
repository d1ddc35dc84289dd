/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the instructions in one pass, with a stack of value numbers, a stack of marks and a memo.
 * There is no recursion and nothing is called; linear in the bytes.
 */
#include "formats/pickle/pickle.h"

#include "base/escape.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMO_SLACK 1000000 /* how many numbers a memo may skip */
#define SMALL      256     /* integers below this are shared */

struct pickle_reader {
    struct rp_pickle *out;
    const uint8_t *begin, *at, *end;
    const uint8_t *op; /* the instruction that is being read */
    struct rp_limits limits;
    RP_VEC(rp_pickle_id) stack;
    RP_VEC(size_t) marks; /* heights of the stack */
    RP_VEC(rp_pickle_id) memo;
    rp_pickle_id small[SMALL];
    size_t memoized;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ values */

enum rp_code rp_pickle_new_value(struct rp_pickle *p, const struct rp_pickle_value *value,
                                 rp_pickle_id *out, struct rp_err *err)
{
    if (p->values.n >= RP_NONE - 1)
        return rp_err_set(err, RP_LIMIT, "more than %u values", RP_NONE - 1);
    *out = (rp_pickle_id)p->values.n;
    return rp_vec_push(&p->values, *value, err);
}

enum rp_code rp_pickle_append(struct rp_pickle *p, rp_pickle_id container,
                              const rp_pickle_id *items, size_t n, struct rp_err *err)
{
    struct rp_pickle_value *c = &p->values.at[container];
    size_t need = (size_t)c->n + n, cap = c->cap;

    if (need > UINT32_MAX / 2)
        return rp_err_set(err, RP_LIMIT, "a list of more than %u items", UINT32_MAX / 2);
    if (need > cap) {
        cap = need > 2 * cap ? need : 2 * cap;
        rp_pickle_id *grown = RP_ARENA_NEW(&p->arena, rp_pickle_id, cap);
        RP_TRY(rp_err_need(grown, err, "reading a list"));
        if (c->n)
            memcpy(grown, c->v.items, c->n * sizeof *grown);
        c->v.items = grown;
        c->cap = (uint32_t)cap;
    }
    if (n)
        memcpy(c->v.items + c->n, items, n * sizeof *items);
    c->n = (uint32_t)need;
    return RP_OK;
}

static bool value_is(const struct rp_pickle_value *value, const char *word)
{
    return value->type == RP_PICKLE_TEXT && value->n == strlen(word) &&
           !memcmp(value->v.text, word, value->n);
}

/* A dict may be large, and be looked up as often as the file has bytes, so it gets an index. */
#define LARGE_DICT 64 /* number of items, which are keys and values */

static uint64_t key_hash(rp_pickle_id dict, const char *key, size_t n)
{
    return rp_hash_join(rp_hash_bytes(key, n), dict);
}

rp_pickle_id rp_pickle_get(const struct rp_pickle *p, rp_pickle_id dict, const char *key)
{
    const struct rp_pickle_value *d = dict == RP_NONE ? NULL : &p->values.at[dict];

    if (!d || d->type != RP_PICKLE_DICT)
        return RP_NONE;
    if (d->n > LARGE_DICT && p->indexed) {
        uint32_t known = rp_map_get(&p->keys, key_hash(dict, key, strlen(key)));
        if (known == RP_MAP_NONE)
            return RP_NONE;
        if (value_is(&p->values.at[d->v.items[known - 1]], key))
            return d->v.items[known];
    } /* otherwise two keys have the same hash, so search */
    for (uint32_t i = d->n; i >= 2; i -= 2)
        if (value_is(&p->values.at[d->v.items[i - 2]], key))
            return d->v.items[i - 1];
    return RP_NONE;
}

int64_t rp_pickle_get_int(const struct rp_pickle *p, rp_pickle_id dict, const char *key,
                          int64_t fallback)
{
    rp_pickle_id id = rp_pickle_get(p, dict, key);

    if (id == RP_NONE)
        return fallback;
    return p->values.at[id].type == RP_PICKLE_INT || p->values.at[id].type == RP_PICKLE_BOOL
               ? p->values.at[id].v.i
               : fallback;
}

struct rp_pickle_text rp_pickle_get_text(const struct rp_pickle *p, rp_pickle_id dict,
                                         const char *key)
{
    rp_pickle_id id = rp_pickle_get(p, dict, key);

    if (id == RP_NONE || p->values.at[id].type != RP_PICKLE_TEXT)
        return (struct rp_pickle_text){"", 0};
    return (struct rp_pickle_text){p->values.at[id].v.text, p->values.at[id].n};
}

bool rp_pickle_text_is(struct rp_pickle_text text, const char *word)
{
    return text.n == strlen(word) && !memcmp(text.at, word, text.n);
}

bool rp_pickle_begins(const uint8_t *head, size_t n)
{
    static const char ops[] = "(.01FNIJKLMPQRSTUVXabcdeghijloprqstu})]GCB";

    return n >= 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 &&
           (memchr(ops, head[2], sizeof ops - 1) || (head[2] >= 0x80 && head[2] <= 0x98));
}

/* ------------------------------------------------------------------ errors */

static unsigned long long op_offset(const struct pickle_reader *r)
{
    return (unsigned long long)(r->op - r->begin);
}

static enum rp_code pickle_error(const struct pickle_reader *r, const char *what)
{
    return rp_err_set_at(r->err, RP_FORMAT, op_offset(r), "byte %llu: %s", op_offset(r), what);
}

/* Instructions that would import, build or call something. */
static const struct {
    uint8_t op;
    const char *name;
} refused[] = {
    {'R', "REDUCE"},          {'b', "BUILD"},      {'i', "INST"},   {'o', "OBJ"},
    {0x81, "NEWOBJ"},         {0x92, "NEWOBJ_EX"}, {'P', "PERSID"}, {'Q', "BINPERSID"},
    {0x82, "EXT1"},           {0x83, "EXT2"},      {0x84, "EXT4"},  {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"}};

static enum rp_code refuse_op(const struct pickle_reader *r)
{
    unsigned long long at = op_offset(r);

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].op == *r->op)
            return rp_err_set_at(
                r->err, RP_UNSUPPORTED, at,
                "byte %llu: the pickle instruction %s makes objects by running code and is not "
                "executed; save plain lists and dicts",
                at, refused[i].name);
    return rp_err_set_at(r->err, RP_FORMAT, at, "byte %llu: 0x%02x is not a pickle instruction", at,
                         *r->op);
}

static enum rp_code cut_short(const struct pickle_reader *r)
{
    unsigned long long at = (unsigned long long)(r->end - r->begin);

    return rp_err_set_at(r->err, RP_FORMAT, at, "byte %llu: the pickle is cut short", at);
}

/* ------------------------------------------------------------------ the input */

static enum rp_code take_bytes(struct pickle_reader *r, uint64_t n, const uint8_t **out)
{
    if (n > (uint64_t)(r->end - r->at))
        return cut_short(r);
    *out = r->at;
    r->at += n;
    return RP_OK;
}

/* Reads a little-endian number of `width` bytes. */
static enum rp_code take_number(struct pickle_reader *r, unsigned width, uint64_t *out)
{
    const uint8_t *p = NULL;

    RP_TRY(take_bytes(r, width, &p));
    *out = 0;
    for (unsigned i = 0; i < width; i++)
        *out |= (uint64_t)p[i] << (8 * i);
    return RP_OK;
}

static enum rp_code check_length(struct pickle_reader *r, uint64_t n)
{
    if (n <= r->limits.token_bytes && n < UINT32_MAX)
        return RP_OK;
    return rp_err_set_at(r->err, RP_LIMIT, op_offset(r),
                         "byte %llu: a value of %llu bytes is over the limit of %llu", op_offset(r),
                         (unsigned long long)n, (unsigned long long)r->limits.token_bytes);
}

/* Reads the rest of a line, without its end. */
static enum rp_code take_line(struct pickle_reader *r, const char **out, size_t *n)
{
    const uint8_t *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));

    if (!nl)
        return cut_short(r);
    *out = (const char *)r->at;
    *n = (size_t)(nl - r->at);
    RP_TRY(check_length(r, *n));
    r->at = nl + 1;
    if (*n && (*out)[*n - 1] == '\r')
        --*n;
    return RP_OK;
}

/* Reads a number in a line, of at most 62 digits. */
static enum rp_code line_number(struct pickle_reader *r, const char *line, size_t n, int64_t *out,
                                bool *fits)
{
    char text[64], *end;

    *fits = n < sizeof text;
    if (!*fits)
        return RP_OK;
    memcpy(text, line, n);
    text[n] = '\0';
    errno = 0;
    *out = strtoll(text, &end, 10);
    *fits = errno == 0;
    return end == text || *end ? pickle_error(r, "not a number") : RP_OK;
}

/* ------------------------------------------------------------------ the stack */

static enum rp_code push_id(struct pickle_reader *r, rp_pickle_id id)
{
    return rp_vec_push(&r->stack, id, r->err);
}

static enum rp_code push_value(struct pickle_reader *r, struct rp_pickle_value value)
{
    rp_pickle_id id = RP_NONE;

    RP_TRY(rp_pickle_new_value(r->out, &value, &id, r->err));
    return push_id(r, id);
}

static enum rp_code push_plain(struct pickle_reader *r, enum rp_pickle_type type, int64_t i)
{
    rp_pickle_id *small = type == RP_PICKLE_INT && i >= 0 && i < SMALL ? &r->small[i] : NULL;

    if (small && *small != RP_NONE)
        return push_id(r, *small);
    RP_TRY(push_value(r, (struct rp_pickle_value){.type = (uint8_t)type, .v.i = i}));
    if (small)
        *small = r->stack.at[r->stack.n - 1];
    return RP_OK;
}

/* Reads a text with its length before it, a number of `width` bytes. */
static enum rp_code push_counted(struct pickle_reader *r, enum rp_pickle_type type, unsigned width)
{
    uint64_t n = 0;

    RP_TRY(take_number(r, width, &n));
    const uint8_t *p = NULL;
    RP_TRY(check_length(r, n));
    RP_TRY(take_bytes(r, n, &p));
    return push_value(r, (struct rp_pickle_value){
                             .type = (uint8_t)type, .n = (uint32_t)n, .v.text = (const char *)p});
}

/* The number of values above the innermost mark, or else above the bottom of the stack. */
static size_t stack_room(const struct pickle_reader *r)
{
    return r->stack.n - (r->marks.n ? r->marks.at[r->marks.n - 1] : 0);
}

static enum rp_code need_values(const struct pickle_reader *r, size_t n)
{
    return stack_room(r) >= n ? RP_OK : pickle_error(r, "the stack has too few values");
}

/* Removes the innermost mark; the values from *from on, which were above it, stay on the stack. */
static enum rp_code pop_mark(struct pickle_reader *r, size_t *from)
{
    if (!r->marks.n)
        return pickle_error(r, "there is no mark on the stack");
    *from = r->marks.at[--r->marks.n];
    return RP_OK;
}

static enum rp_code push_mark(struct pickle_reader *r)
{
    if (r->marks.n >= r->limits.depth)
        return rp_err_set_at(r->err, RP_LIMIT, op_offset(r), "byte %llu: more than %u open marks",
                             op_offset(r), r->limits.depth);
    return rp_vec_push(&r->marks, r->stack.n, r->err);
}

/* ------------------------------------------------------------------ containers */

/* Replaces the values from `from` on by a container of them. */
static enum rp_code collect(struct pickle_reader *r, enum rp_pickle_type type, size_t from)
{
    struct rp_pickle_value value = {.type = (uint8_t)type};
    size_t n = r->stack.n - from;
    rp_pickle_id id = RP_NONE;

    if (type == RP_PICKLE_DICT && n % 2)
        return pickle_error(r, "a key without a value");
    RP_TRY(rp_pickle_new_value(r->out, &value, &id, r->err));
    if (n) /* otherwise there may be no stack yet */
        RP_TRY(rp_pickle_append(r->out, id, r->stack.at + from, n, r->err));
    r->stack.n = from;
    return push_id(r, id);
}

static enum rp_code collect_marked(struct pickle_reader *r, enum rp_pickle_type type)
{
    size_t from = 0;

    RP_TRY(pop_mark(r, &from));
    return collect(r, type, from);
}

static enum rp_code collect_last(struct pickle_reader *r, size_t n)
{
    RP_TRY(need_values(r, n));
    return collect(r, RP_PICKLE_TUPLE, r->stack.n - n);
}

/* Moves the values from `from` on into the container below them. */
static enum rp_code add_items(struct pickle_reader *r, enum rp_pickle_type type, size_t from)
{
    size_t floor = r->marks.n ? r->marks.at[r->marks.n - 1] : 0;

    if (from <= floor)
        return pickle_error(r, "there is no container to add to");
    rp_pickle_id into = r->stack.at[from - 1];
    if (r->out->values.at[into].type != type)
        return pickle_error(r, "items are added to a value of another type");
    if (type == RP_PICKLE_DICT && (r->stack.n - from) % 2)
        return pickle_error(r, "a key without a value");
    RP_TRY(rp_pickle_append(r->out, into, r->stack.at + from, r->stack.n - from, r->err));
    r->stack.n = from;
    return RP_OK;
}

static enum rp_code add_marked(struct pickle_reader *r, enum rp_pickle_type type)
{
    size_t from = 0;

    RP_TRY(pop_mark(r, &from));
    return add_items(r, type, from);
}

static enum rp_code add_last(struct pickle_reader *r, enum rp_pickle_type type, size_t n)
{
    RP_TRY(need_values(r, n + 1));
    return add_items(r, type, r->stack.n - n);
}

/* ------------------------------------------------------------------ the memo */

static enum rp_code memo_put(struct pickle_reader *r, uint64_t i)
{
    RP_TRY(need_values(r, 1));
    if (i > r->out->values.n + MEMO_SLACK)
        return pickle_error(r, "the number of a memo is too large");
    while (r->memo.n <= i)
        RP_TRY(rp_vec_push(&r->memo, RP_NONE, r->err));
    r->memoized += r->memo.at[i] == RP_NONE;
    r->memo.at[i] = r->stack.at[r->stack.n - 1];
    return RP_OK;
}

static enum rp_code memo_get(struct pickle_reader *r, uint64_t i)
{
    if (i >= r->memo.n || r->memo.at[i] == RP_NONE)
        return pickle_error(r, "nothing was stored under this number of the memo");
    return push_id(r, r->memo.at[i]);
}

static enum rp_code memo_binary(struct pickle_reader *r, bool put, unsigned width)
{
    uint64_t i;

    RP_TRY(take_number(r, width, &i));
    return put ? memo_put(r, i) : memo_get(r, i);
}

static enum rp_code memo_text(struct pickle_reader *r, bool put)
{
    const char *line = NULL;
    int64_t i;
    size_t n;
    bool fits;

    RP_TRY(take_line(r, &line, &n));
    RP_TRY(line_number(r, line, n, &i, &fits));
    if (!fits || i < 0)
        return pickle_error(r, "the number of a memo is too large");
    return put ? memo_put(r, (uint64_t)i) : memo_get(r, (uint64_t)i);
}

/* ------------------------------------------------------------------ values in text (protocol 0) */

static enum rp_code push_line_int(struct pickle_reader *r)
{
    const char *line = NULL;
    int64_t i;
    size_t n;
    bool fits;

    RP_TRY(take_line(r, &line, &n));
    if (*r->op == 'I' && n == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1'))
        return push_plain(r, RP_PICKLE_BOOL, line[1] == '1');
    if (*r->op == 'L' && n && line[n - 1] == 'L')
        n--;
    RP_TRY(line_number(r, line, n, &i, &fits));
    return push_plain(r, fits ? RP_PICKLE_INT : RP_PICKLE_HUGE, fits ? i : 0);
}

static enum rp_code push_line_float(struct pickle_reader *r)
{
    char text[64], *end;
    const char *line = NULL;
    size_t n;

    RP_TRY(take_line(r, &line, &n));
    if (n >= sizeof text)
        return pickle_error(r, "not a number");
    memcpy(text, line, n);
    text[n] = '\0';
    double f = strtod(text, &end);
    if (end == text || *end)
        return pickle_error(r, "not a number");
    return push_value(r, (struct rp_pickle_value){.type = RP_PICKLE_FLOAT, .v.f = f});
}

/* Reads the character of \uXXXX, \UXXXXXXXX or \xXX, whose letter is at `at`; returns the number of
   digits, or 0 if it is malformed. */
static size_t hex_escape(const char *at, size_t n, uint32_t *out)
{
    size_t digits = *at == 'u' ? 4 : *at == 'U' ? 8 : *at == 'x' ? 2 : 0;

    *out = 0;
    for (size_t i = 1; i <= digits; i++) {
        int d = i < n ? rp_hex_digit(at[i]) : -1;

        if (d < 0)
            return 0;
        *out = *out << 4 | (uint32_t)d;
    }
    return digits;
}

/* Undoes the escapes of UNICODE (\u, \U) or of STRING ( , \x..); every other pair stands for
   itself. */
static size_t unescape_line(char *to, const char *line, size_t n, bool repr)
{
    static const char letters[] = "ntr\\'\"", meant[] = "\n\t\r\\'\"";
    size_t used = 0;
    uint32_t c;

    for (size_t i = 0; i < n; i++) {
        if (line[i] != '\\' || i + 1 == n) {
            used += repr || !((unsigned char)line[i] & 0x80)
                        ? (to[used] = line[i], 1)
                        : rp_utf8_encode(to + used, (unsigned char)line[i]);
            continue;
        }
        size_t digits = (line[i + 1] == 'x') == repr ? hex_escape(line + i + 1, n - i - 1, &c) : 0;
        const char *letter = repr ? strchr(letters, line[i + 1]) : NULL;
        if (digits) {
            used += rp_utf8_encode(to + used, c > 0x10ffff ? 0xfffd : c);
            i += 1 + digits;
        } else if (letter && *letter) {
            to[used++] = meant[letter - letters];
            i++;
        } else {
            to[used++] = '\\';
        }
    }
    return used;
}

static enum rp_code push_line_text(struct pickle_reader *r)
{
    bool repr = *r->op == 'S';
    const char *line = NULL;
    size_t n;

    RP_TRY(take_line(r, &line, &n));
    if (repr) {
        if (n < 2 || (line[0] != '\'' && line[0] != '"') || line[n - 1] != line[0])
            return pickle_error(r, "a string without quotes");
        line++;
        n -= 2;
    }
    char *text = rp_arena_alloc(&r->out->arena, 2 * n + 8, 1);
    RP_TRY(rp_err_need(text, r->err, "reading a text"));
    n = unescape_line(text, line, n, repr);
    return push_value(
        r, (struct rp_pickle_value){.type = RP_PICKLE_TEXT, .n = (uint32_t)n, .v.text = text});
}

/* ------------------------------------------------------------------ binary numbers */

/* Reads a little-endian two's complement number of any length. */
static enum rp_code push_long(struct pickle_reader *r, unsigned width)
{
    const uint8_t *p = NULL;
    uint64_t n = 0, bits = 0;

    RP_TRY(take_number(r, width, &n));
    RP_TRY(check_length(r, n));
    RP_TRY(take_bytes(r, n, &p));
    if (n > 8)
        return push_plain(r, RP_PICKLE_HUGE, 0);
    for (size_t i = 0; i < n; i++)
        bits |= (uint64_t)p[i] << (8 * i);
    if (n && n < 8 && p[n - 1] & 0x80)
        bits |= ~UINT64_C(0) << (8 * n);
    return push_plain(r, RP_PICKLE_INT, (int64_t)bits);
}

static enum rp_code push_double(struct pickle_reader *r)
{
    struct rp_pickle_value value = {.type = RP_PICKLE_FLOAT};
    const uint8_t *p = NULL;
    uint64_t bits = 0;

    RP_TRY(take_bytes(r, 8, &p));
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | p[i];
    memcpy(&value.v.f, &bits, sizeof bits);
    return push_value(r, value);
}

static enum rp_code push_binary_int(struct pickle_reader *r, unsigned width)
{
    uint64_t i;

    RP_TRY(take_number(r, width, &i));
    return push_plain(r, RP_PICKLE_INT, width == 4 ? (int64_t)(int32_t)(uint32_t)i : (int64_t)i);
}

/* ------------------------------------------------------------------ dicts by another name */

/* Accepts only containers that hold plain values and nothing else. */
static enum rp_code push_global(struct pickle_reader *r, const char *module, size_t nmodule,
                                const char *name, size_t nname)
{
    static const char *const inert[][2] = {{"collections", "OrderedDict"},
                                           {"collections", "defaultdict"},
                                           {"builtins", "dict"},
                                           {"builtins", "list"},
                                           {"builtins", "int"},
                                           {"builtins", "set"}};
    char shown[120];

    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++)
        if (strlen(inert[i][0]) == nmodule && !memcmp(inert[i][0], module, nmodule) &&
            strlen(inert[i][1]) == nname && !memcmp(inert[i][1], name, nname))
            return push_plain(r, RP_PICKLE_GLOBAL, (int64_t)i);
    rp_text_escape(shown, sizeof shown / 2, module, nmodule < 40 ? nmodule : 40);
    rp_text_escape(shown + sizeof shown / 2, sizeof shown / 2, name, nname < 40 ? nname : 40);
    return rp_err_set_at(r->err, RP_UNSUPPORTED, op_offset(r),
                         "byte %llu: the pickle names '%s.%s', which is not plain data; nothing in "
                         "a pickle is executed",
                         op_offset(r), shown, shown + sizeof shown / 2);
}

static enum rp_code push_text_global(struct pickle_reader *r)
{
    const char *module, *name;
    size_t nmodule, nname;

    RP_TRY(take_line(r, &module, &nmodule));
    RP_TRY(take_line(r, &name, &nname));
    return push_global(r, module, nmodule, name, nname);
}

static enum rp_code push_stack_global(struct pickle_reader *r)
{
    RP_TRY(need_values(r, 2));
    if (!r->stack.at)
        return pickle_error(r, "the stack has too few values");
    const struct rp_pickle_value *name = &r->out->values.at[r->stack.at[r->stack.n - 1]];
    const struct rp_pickle_value *module = &r->out->values.at[r->stack.at[r->stack.n - 2]];
    if (name->type != RP_PICKLE_TEXT || module->type != RP_PICKLE_TEXT)
        return pickle_error(r, "a name that is not a text");
    r->stack.n -= 2;
    return push_global(r, module->v.text, module->n, name->v.text, name->n);
}

/* Executes REDUCE, only for one of these containers with the arguments of an empty one. */
static enum rp_code reduce(struct pickle_reader *r)
{
    const struct rp_pickle_value *of;

    RP_TRY(need_values(r, 2));
    if (!r->stack.at)
        return pickle_error(r, "the stack has too few values");
    const struct rp_pickle_value *args = &r->out->values.at[r->stack.at[r->stack.n - 1]];
    const struct rp_pickle_value *callee = &r->out->values.at[r->stack.at[r->stack.n - 2]];
    of =
        args->type == RP_PICKLE_TUPLE && args->n == 1 ? &r->out->values.at[args->v.items[0]] : NULL;
    if (callee->type != RP_PICKLE_GLOBAL || args->type != RP_PICKLE_TUPLE || callee->v.i > 2 ||
        (args->n && !(callee->v.i == 1 && of && of->type == RP_PICKLE_GLOBAL)))
        return refuse_op(r);
    r->stack.n -= 2;
    return push_value(r, (struct rp_pickle_value){.type = RP_PICKLE_DICT});
}

/* ------------------------------------------------------------------ instructions */

static enum rp_code duplicate(struct pickle_reader *r)
{
    RP_TRY(need_values(r, 1));
    return r->stack.at ? push_id(r, r->stack.at[r->stack.n - 1])
                       : pickle_error(r, "the stack has too few values");
}

static enum rp_code protocol(struct pickle_reader *r)
{
    uint64_t version;

    RP_TRY(take_number(r, 1, &version));
    return version <= 5 ? RP_OK : pickle_error(r, "the protocol is newer than 5");
}

static enum rp_code execute_old(struct pickle_reader *r)
{
    switch (*r->op) {
    case '(':
        return push_mark(r);
    case '0':
        if (stack_room(r)) {
            r->stack.n--;
            return RP_OK;
        }
        if (!r->marks.n)
            return pickle_error(r, "the stack has too few values");
        r->marks.n--;
        return RP_OK;
    case '1': {
        return pop_mark(r, &r->stack.n);
    }
    case '2':
        return duplicate(r);
    case 'F':
        return push_line_float(r);
    case 'I':
    case 'L':
        return push_line_int(r);
    case 'S':
    case 'V':
        return push_line_text(r);
    case 'l':
        return collect_marked(r, RP_PICKLE_LIST);
    case 'd':
        return collect_marked(r, RP_PICKLE_DICT);
    case 'p':
        return memo_text(r, true);
    case 'g':
        return memo_text(r, false);
    case 'c':
        return push_text_global(r);
    case 'R':
        return reduce(r);
    default:
        return refuse_op(r);
    }
}

static enum rp_code execute_new(struct pickle_reader *r)
{
    switch (*r->op) {
    case 0x80:
        return protocol(r);
    case 0x85:
    case 0x86:
    case 0x87:
        return collect_last(r, (size_t)*r->op - 0x84);
    case 0x88:
    case 0x89:
        return push_plain(r, RP_PICKLE_BOOL, *r->op == 0x88);
    case 0x8a:
        return push_long(r, 1);
    case 0x8b:
        return push_long(r, 4);
    case 0x8c:
        return push_counted(r, RP_PICKLE_TEXT, 1);
    case 0x8d:
        return push_counted(r, RP_PICKLE_TEXT, 8);
    case 0x8e:
    case 0x96:
        return push_counted(r, RP_PICKLE_BYTES, 8);
    case 0x8f:
        return push_value(r, (struct rp_pickle_value){.type = RP_PICKLE_SET});
    case 0x90:
        return add_marked(r, RP_PICKLE_SET);
    case 0x91:
        return collect_marked(r, RP_PICKLE_SET);
    case 0x93:
        return push_stack_global(r);
    case 0x94:
        return memo_put(r, r->memoized);
    case 0x95: {
        uint64_t n = 0;
        RP_TRY(take_number(r, 8, &n));
        return n <= (uint64_t)(r->end - r->at) ? RP_OK : cut_short(r);
    }
    default:
        return refuse_op(r);
    }
}

static enum rp_code execute(struct pickle_reader *r)
{
    switch (*r->op) {
    case 'N':
        return push_plain(r, RP_PICKLE_NONE, 0);
    case 'K':
        return push_binary_int(r, 1);
    case 'M':
        return push_binary_int(r, 2);
    case 'J':
        return push_binary_int(r, 4);
    case 'G':
        return push_double(r);
    case 'U':
        return push_counted(r, RP_PICKLE_TEXT, 1);
    case 'T':
    case 'X':
        return push_counted(r, RP_PICKLE_TEXT, 4);
    case 'C':
        return push_counted(r, RP_PICKLE_BYTES, 1);
    case 'B':
        return push_counted(r, RP_PICKLE_BYTES, 4);
    case ')':
        return push_value(r, (struct rp_pickle_value){.type = RP_PICKLE_TUPLE});
    case ']':
        return push_value(r, (struct rp_pickle_value){.type = RP_PICKLE_LIST});
    case '}':
        return push_value(r, (struct rp_pickle_value){.type = RP_PICKLE_DICT});
    case 't':
        return collect_marked(r, RP_PICKLE_TUPLE);
    case 'a':
        return add_last(r, RP_PICKLE_LIST, 1);
    case 'e':
        return add_marked(r, RP_PICKLE_LIST);
    case 's':
        return add_last(r, RP_PICKLE_DICT, 2);
    case 'u':
        return add_marked(r, RP_PICKLE_DICT);
    case 'q':
        return memo_binary(r, true, 1);
    case 'r':
        return memo_binary(r, true, 4);
    case 'h':
        return memo_binary(r, false, 1);
    case 'j':
        return memo_binary(r, false, 4);
    default:
        return *r->op & 0x80 ? execute_new(r) : execute_old(r);
    }
}

static enum rp_code execute_all(struct pickle_reader *r)
{
    while (r->at < r->end) {
        r->op = r->at++;
        if (*r->op != '.') {
            RP_TRY(execute(r));
            continue;
        }
        RP_TRY(need_values(r, 1));
        r->out->root = r->stack.at[r->stack.n - 1];
        r->out->used = (size_t)(r->at - r->begin);
        return RP_OK;
    }
    return cut_short(r);
}

static void reader_release(struct pickle_reader *r)
{
    rp_vec_release(&r->stack);
    rp_vec_release(&r->marks);
    rp_vec_release(&r->memo);
}

enum rp_code rp_pickle_read(struct rp_pickle *out, const void *bytes, size_t n,
                            const struct rp_limits *limits, struct rp_err *err)
{
    RP_SCOPED(reader_release) struct pickle_reader r = {.out = out, .begin = bytes, .err = err};

    *out = (struct rp_pickle){.root = RP_NONE};
    r.at = r.op = r.begin;
    r.end = r.begin + n;
    r.limits = limits ? *limits : RP_LIMITS_DEFAULT;
    memset(r.small, 0xff, sizeof r.small);
    RP_TRY(n ? execute_all(&r) : rp_err_set_at(err, RP_FORMAT, 0, "is empty"));

    /* Large dictionaries are indexed, so that a value is found without a search. */
    for (rp_pickle_id id = 0; id < out->values.n; id++) {
        const struct rp_pickle_value *d = &out->values.at[id];
        if (d->type != RP_PICKLE_DICT || d->n <= LARGE_DICT)
            continue;
        for (uint32_t i = 0; i + 1 < d->n; i += 2) {
            const struct rp_pickle_value *key = &out->values.at[d->v.items[i]];
            if (key->type == RP_PICKLE_TEXT)
                RP_TRY(rp_map_put(&out->keys, key_hash(id, key->v.text, key->n), i + 1, err));
        }
    }
    out->indexed = true;
    return RP_OK;
}

enum rp_code rp_pickle_items(struct rp_pickle *p, rp_pickle_id list, size_t bytes,
                             const rp_pickle_id **items, size_t *n, struct rp_err *err)
{
    uint64_t most = 8 * (uint64_t)bytes + 4096;

    *n = 0;
    *items = NULL;
    if (!rp_pickle_is_list(p, list))
        return RP_OK;
    *n = rp_pickle_at(p, list)->n;
    *items = rp_pickle_at(p, list)->v.items;
    p->visits += *n;
    if (p->visits > most)
        return rp_err_set(err, RP_LIMIT, "lists that contain each other: over %llu items",
                          (unsigned long long)most);
    return RP_OK;
}

void rp_pickle_release(struct rp_pickle *p)
{
    rp_arena_release(&p->arena);
    rp_vec_release(&p->values);
    rp_map_release(&p->keys);
}
