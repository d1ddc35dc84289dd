/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses values from HLO text. Each type has one function that reads the whole text or fails; a
 * text that fails stays raw text. Lists are collected on the stack, or in a vector if they are
 * long, and are copied into the program's arena. The nesting of shardings is bounded.
 */
#include "base/text.h"
#include "program/program.h"
#include "program/window.h"

#include <stdlib.h>
#include <string.h>

#define BUFFER_FEW 32

struct scan {
    const char *at, *end;
    struct rp_program *p;
    bool nomem;
    int64_t few[BUFFER_FEW]; /* for the list that is being read: there is only one at a time */
};

static void scan_blank(struct scan *s)
{
    for (;;) {
        while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t'))
            s->at++;
        if (s->end - s->at < 4 || s->at[0] != '/' || s->at[1] != '*')
            return;
        s->at = memmem(s->at + 2, (size_t)(s->end - s->at - 2), "*/", 2);
        if (!s->at) {
            s->at = s->end;
            return;
        }
        s->at += 2;
    }
}

static inline bool scan_char(struct scan *s, char c)
{
    if (s->at < s->end && *s->at == c) { /* most often there is no blank before it */
        s->at++;
        return true;
    }
    scan_blank(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool scan_text(struct scan *s, const char *word)
{
    size_t n = strlen(word);

    scan_blank(s);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

static bool scan_int(struct scan *s, int64_t *value)
{
    bool minus = scan_char(s, '-');
    const char *from = s->at;
    int64_t v = 0;

    if (s->at == s->end || *s->at < '0' || *s->at > '9') {
        scan_blank(s);
        from = s->at;
    }
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        if (s->at - from < 18) /* cannot overflow */
            v = v * 10 + (*s->at - '0');
        else if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->at - '0', &v))
            return false;
    }
    *value = minus ? -v : v;
    return s->at > from;
}

static bool scan_end(struct scan *s)
{
    scan_blank(s);
    return s->at == s->end;
}

static void *scan_keep(struct scan *s, const void *from, size_t n, size_t size)
{
    void *kept = n ? rp_arena_alloc(&s->p->arena, n * size, 8) : NULL;

    if (kept)
        memcpy(kept, from, n * size);
    s->nomem |= n && !kept;
    return kept;
}

/* ---- lists of integers ---- */

/* Short lists need memory only for the final copy. */
struct int_buffer {
    int64_t *few; /* the scan's */
    size_t n;
    RP_VEC(int64_t) many;
};

static bool buffer_push(struct scan *s, struct int_buffer *b, int64_t value)
{
    if (b->n < BUFFER_FEW) {
        b->few[b->n++] = value;
        return true;
    }
    if (!b->many.n) {
        if (rp_vec_reserve(&b->many, (size_t)4 * BUFFER_FEW, NULL) != RP_OK) {
            s->nomem = true;
            return false;
        }
        memcpy(b->many.at, b->few, BUFFER_FEW * sizeof *b->few);
        b->many.n = BUFFER_FEW;
    }
    if (rp_vec_push(&b->many, value, NULL) != RP_OK) {
        s->nomem = true;
        return false;
    }
    b->n++;
    return true;
}

static const int64_t *buffer_keep(struct scan *s, struct int_buffer *b)
{
    const int64_t *kept = scan_keep(s, b->many.n ? b->many.at : b->few, b->n, sizeof *kept);

    rp_vec_release(&b->many);
    return kept;
}

/* Reads "1,0" up to the first other character. */
static bool scan_ints(struct scan *s, struct int_buffer *b)
{
    int64_t v;

    do {
        if (!scan_int(s, &v) || !buffer_push(s, b, v))
            return false;
    } while (scan_char(s, ','));
    return true;
}

/* Reads "{1,0}" with the given brackets. */
static bool scan_list(struct scan *s, char open, char close, struct rp_int_list *out)
{
    if (s->end - s->at >= 2 && s->at[0] == open && s->at[1] == close) { /* empty ones are many */
        s->at += 2;
        *out = (struct rp_int_list){NULL, 0};
        return true;
    }
    struct int_buffer b = {.few = s->few};
    bool good =
        scan_char(s, open) && (scan_char(s, close) || (scan_ints(s, &b) && scan_char(s, close)));

    out->n = b.n;
    out->at = buffer_keep(s, &b);
    return good;
}

static bool parse_ints(struct scan *s, struct rp_attr *out)
{
    struct rp_int_list list;
    int64_t v;

    if (s->at < s->end && *s->at != '{') { /* old files write a single number without brackets */
        if (!scan_int(s, &v))
            return false;
        list = (struct rp_int_list){scan_keep(s, &v, 1, sizeof v), 1};
    } else if (!scan_list(s, '{', '}', &list)) {
        return false;
    }
    *out = (struct rp_attr){.ints = list.at, .n = (uint32_t)list.n};
    return true;
}

static bool parse_int(struct scan *s, struct rp_attr *out)
{
    bool list = scan_char(s, '{');

    return scan_int(s, &out->number) && (!list || scan_char(s, '}'));
}

/* "{{0,1},{1,0}}" */
static bool parse_pairs(struct scan *s, struct rp_attr *out)
{
    struct int_buffer b = {.few = s->few};
    bool good = scan_char(s, '{');
    int64_t from, to;

    if (good && !scan_char(s, '}')) {
        do {
            good = scan_char(s, '{') && scan_int(s, &from) && scan_char(s, ',') &&
                   scan_int(s, &to) && scan_char(s, '}') && buffer_push(s, &b, from) &&
                   buffer_push(s, &b, to);
        } while (good && scan_char(s, ','));
        good = good && scan_char(s, '}');
    }
    out->n = (uint32_t)b.n;
    out->ints = buffer_keep(s, &b);
    return good;
}

/* "{[0:4], [2:8:2]}" */
static bool parse_slices(struct scan *s, struct rp_attr *out)
{
    struct int_buffer b = {.few = s->few};
    bool good = scan_char(s, '{');

    while (good && scan_char(s, '[')) {
        int64_t v[3] = {0, 0, 1};

        good = scan_int(s, &v[0]) && scan_char(s, ':') && scan_int(s, &v[1]) &&
               (!scan_char(s, ':') || scan_int(s, &v[2])) && scan_char(s, ']');
        for (size_t i = 0; good && i < 3; i++)
            good = buffer_push(s, &b, v[i]);
        scan_char(s, ',');
    }
    out->n = (uint32_t)b.n;
    out->ints = buffer_keep(s, &b);
    return good && scan_char(s, '}');
}

/* "0_1x2_3_1" */
static bool parse_padding(struct scan *s, struct rp_attr *out)
{
    struct int_buffer b = {.few = s->few};
    bool good;

    do {
        int64_t v[3] = {0, 0, 0};

        good = scan_int(s, &v[0]) && scan_char(s, '_') && scan_int(s, &v[1]) &&
               (!scan_char(s, '_') || scan_int(s, &v[2]));
        for (size_t i = 0; good && i < 3; i++)
            good = buffer_push(s, &b, v[i]);
    } while (good && scan_char(s, 'x'));
    out->n = (uint32_t)b.n;
    out->ints = buffer_keep(s, &b);
    return good;
}

/* ---- texts ---- */

size_t rp_unescape(const char *in, size_t n, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (in[i] != '\\' || i + 1 == n) {
            out[len++] = in[i];
        } else if (in[i + 1] == 'x' && i + 3 < n && rp_hex_number(in + i + 2, 2) >= 0) {
            out[len++] = (char)rp_hex_number(in + i + 2, 2);
            i += 3;
        } else if (in[i + 1] >= '0' && in[i + 1] <= '3' && i + 3 < n) {
            out[len++] = (char)((in[i + 1] - '0') << 6 | (in[i + 2] & 7) << 3 | (in[i + 3] & 7));
            i += 3;
        } else {
            char c = in[++i];

            out[len++] = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
        }
    }
    return len;
}

/* Reads the string at s, without its quotes and escapes. */
static bool scan_string(struct scan *s, struct rp_slice *out)
{
    char quote = *s->at;
    const char *from = s->at + 1, *to = from;

    while (to < s->end && *to != quote)
        to += *to == '\\' && to + 1 < s->end ? 2 : 1;
    if (to >= s->end)
        return false;
    s->at = to + 1;
    *out = (struct rp_slice){from, (uint32_t)(to - from), 0};
    if (!memchr(from, '\\', out->n))
        return true;
    char *copy = rp_arena_alloc(&s->p->arena, (size_t)out->n + 1, 1);
    s->nomem |= !copy;
    if (!copy)
        return false;
    out->n = (uint32_t)rp_unescape(from, out->n, copy);
    copy[out->n] = '\0';
    out->at = copy;
    return true;
}

static bool is_quote(const struct scan *s)
{
    return s->at < s->end && (*s->at == '"' || *s->at == '\'');
}

static bool parse_string(struct scan *s, struct rp_attr *out)
{
    struct rp_slice text = {s->at, (uint32_t)(s->end - s->at), 0};

    if (is_quote(s) ? !scan_string(s, &text) : !text.n)
        return false;
    if (text.at + text.n == s->end)
        s->at = s->end;
    out->at = text.at;
    out->n = text.n;
    return true;
}

static bool parse_flag(struct scan *s, struct rp_attr *out)
{
    out->number = scan_text(s, "true");
    return out->number || scan_text(s, "false");
}

static bool parse_float(struct scan *s, struct rp_attr *out)
{
    size_t n = (size_t)(s->end - s->at);
    char text[64], *end;

    if (!n || n >= sizeof text)
        return false;
    memcpy(text, s->at, n);
    text[n] = '\0';
    out->real = strtod(text, &end);
    s->at += end - text;
    return end > text;
}

typedef RP_VEC(struct rp_slice) slices;

static bool slices_push(struct scan *s, slices *list, struct rp_slice text)
{
    if (rp_vec_push(list, text, NULL) == RP_OK)
        return true;
    s->nomem = true;
    return false;
}

static bool slices_keep(struct scan *s, slices *list, bool good, struct rp_attr *out)
{
    out->n = (uint32_t)list->n;
    out->texts = scan_keep(s, list->at, list->n, sizeof *list->at);
    rp_vec_release(list);
    return good;
}

/* Reads up to one of these two characters, a blank or the end. */
static struct rp_slice scan_until(struct scan *s, char stop, char other)
{
    const char *from = s->at;

    while (s->at < s->end && *s->at != ' ' && *s->at != stop && *s->at != other)
        s->at++;
    return (struct rp_slice){from, (uint32_t)(s->at - from), 0};
}

/* "{default,highest}" */
static bool parse_words(struct scan *s, struct rp_attr *out)
{
    slices list = {0};
    bool good = scan_char(s, '{');

    while (good && !scan_char(s, '}')) {
        scan_blank(s);
        struct rp_slice word = scan_until(s, ',', '}');
        good = word.n && slices_push(s, &list, word);
        scan_char(s, ',');
    }
    return slices_keep(s, &list, good, out);
}

/* Reads from a bracket to just past the one that closes it. */
static bool scan_brackets(struct scan *s, struct rp_slice *out)
{
    const char *from = s->at;
    size_t depth = 0;

    for (; s->at < s->end; s->at++) {
        if (*s->at == '"') {
            for (s->at++; s->at < s->end && *s->at != '"'; s->at++)
                s->at += *s->at == '\\' && s->at + 1 < s->end;
        } else if (*s->at == '{' || *s->at == '[') {
            depth++;
        } else if ((*s->at == '}' || *s->at == ']') && --depth == 0) {
            s->at++;
            *out = (struct rp_slice){from, (uint32_t)(s->at - from), 0};
            return true;
        }
    }
    s->at = s->end;
    return false;
}

/* "{k=\"v\",other={json}}" */
static bool parse_map(struct scan *s, struct rp_attr *out)
{
    slices list = {0};
    bool good = scan_char(s, '{');

    while (good && !scan_char(s, '}')) {
        struct rp_slice value;

        scan_blank(s);
        struct rp_slice key = scan_until(s, '=', '}');
        good = key.n && scan_char(s, '=');
        scan_blank(s);
        good = good && (is_quote(s)                       ? scan_string(s, &value)
                        : s->at < s->end && *s->at == '{' ? scan_brackets(s, &value)
                                                          : false);
        good = good && slices_push(s, &list, key) && slices_push(s, &list, value);
        scan_char(s, ',');
    }
    return slices_keep(s, &list, good, out);
}

/* ---- replica groups ---- */

/* "{{0,1},{2,3}}" */
static bool listed_groups(struct scan *s, struct rp_replica_groups *g)
{
    static const int64_t none = 0; /* groups without ids need a valid pointer, too */
    RP_VEC(uint32_t) begin = {0};
    struct int_buffer b = {.few = s->few};
    bool good = scan_char(s, '{');

    while (good && !scan_char(s, '}')) {
        s->nomem |= rp_vec_push(&begin, (uint32_t)b.n, NULL) != RP_OK;
        good = !s->nomem && scan_char(s, '{') &&
               (scan_char(s, '}') || (scan_ints(s, &b) && scan_char(s, '}')));
        scan_char(s, ',');
    }
    g->ngroups = begin.n;
    s->nomem |= rp_vec_push(&begin, (uint32_t)b.n, NULL) != RP_OK;
    g->begin = scan_keep(s, begin.at, begin.n, sizeof *begin.at);
    g->ids.n = b.n;
    g->ids.at = b.n ? buffer_keep(s, &b) : &none;
    rp_vec_release(&begin);
    return good;
}

/* "[4,2]T(1,0)" */
static bool scan_reshape(struct scan *s, struct rp_int_list *dims, struct rp_int_list *perm)
{
    return scan_list(s, '[', ']', dims) && (!scan_char(s, 'T') || scan_list(s, '(', ')', perm));
}

/* "[2,4]<=[4,2]T(1,0)" */
static bool iota_groups(struct scan *s, struct rp_replica_groups *g)
{
    int64_t groups;

    g->form = RP_GROUPS_IOTA;
    if (!scan_char(s, '[') || !scan_int(s, &groups) || groups < 0 || !scan_char(s, ',') ||
        !scan_int(s, &g->group_size) || !scan_text(s, "]<="))
        return false;
    g->ngroups = (size_t)groups;
    return scan_reshape(s, &g->dims, &g->perm);
}

#define MESH_AXES 64

static bool mesh_axes(struct scan *s, struct rp_replica_groups *g)
{
    struct rp_mesh_axis axes[MESH_AXES];
    size_t n = 0;

    while (!scan_char(s, ']')) {
        scan_blank(s);
        if (n == MESH_AXES || !is_quote(s) || !scan_string(s, &axes[n].name) ||
            !scan_char(s, '=') || !scan_int(s, &axes[n].size))
            return false;
        n++;
        scan_char(s, ',');
    }
    g->naxes = n;
    g->axes = scan_keep(s, axes, n, sizeof *axes);
    return !s->nomem;
}

/* "'a'" or "'a':(2)4" */
static bool mesh_part(struct scan *s, const struct rp_replica_groups *g, struct rp_mesh_part *part)
{
    struct rp_slice name;

    scan_blank(s);
    if (!is_quote(s) || !scan_string(s, &name))
        return false;
    *part = (struct rp_mesh_part){0, 0, 0};
    while (part->axis < g->naxes && (g->axes[part->axis].name.n != name.n ||
                                     memcmp(g->axes[part->axis].name.at, name.at, name.n) != 0))
        part->axis++;
    if (part->axis == g->naxes)
        return false;
    return !scan_text(s, ":(") ||
           (scan_int(s, &part->before) && scan_char(s, ')') && scan_int(s, &part->size));
}

/* "mesh['a'=2,'b'=4], device_ids=([2,4]T(1,0)) {'b'}" */
static bool mesh_groups(struct scan *s, struct rp_replica_groups *g)
{
    struct rp_mesh_part parts[MESH_AXES];

    g->form = RP_GROUPS_MESH;
    if (!scan_text(s, "mesh[") || !mesh_axes(s, g))
        return false;
    scan_char(s, ',');
    if (scan_text(s, "device_ids=(")) {
        scan_blank(s);
        if (s->at < s->end && *s->at == '[') {
            if (!scan_reshape(s, &g->dims, &g->perm) || !scan_char(s, ')'))
                return false;
        } else {
            s->at--; /* steps back, because the bracket opens the list */
            if (!scan_list(s, '(', ')', &g->ids))
                return false;
        }
    }
    if (!scan_char(s, '{'))
        return false;
    while (!scan_char(s, '}')) {
        if (g->nparts == MESH_AXES || !mesh_part(s, g, &parts[g->nparts]))
            return false;
        g->nparts++;
        scan_char(s, ',');
    }
    g->parts = scan_keep(s, parts, g->nparts, sizeof *parts);
    return true;
}

static bool parse_groups(struct scan *s, struct rp_attr *out)
{
    struct rp_replica_groups g = {.form = RP_GROUPS_LISTED};
    bool good = *s->at == '['   ? iota_groups(s, &g)
                : *s->at == 'm' ? mesh_groups(s, &g)
                                : listed_groups(s, &g);

    if (!good)
        return false;
    out->n = 1;
    out->groups = scan_keep(s, &g, 1, sizeof g);
    return true;
}

/* ---- aliases ---- */

/* "{0}: (1, {}, may-alias)" */
static bool scan_alias(struct scan *s, struct rp_alias *a)
{
    *a = (struct rp_alias){.kind = RP_ALIAS_UNSPECIFIED};
    if (!scan_list(s, '{', '}', &a->output) || !scan_char(s, ':') || !scan_char(s, '(') ||
        !scan_int(s, &a->number))
        return false;
    if (scan_char(s, ',') && !scan_list(s, '{', '}', &a->operand))
        return false;
    if (scan_char(s, ',')) {
        a->kind = scan_text(s, "must") ? RP_ALIAS_MUST : RP_ALIAS_MAY;
        scan_until(s, ')', ')');
    }
    return scan_char(s, ')');
}

static bool parse_aliases(struct scan *s, struct rp_attr *out)
{
    RP_VEC(struct rp_alias) list = {0};
    bool good = scan_char(s, '{');

    while (good && !scan_char(s, '}')) {
        struct rp_alias a;

        good = scan_alias(s, &a);
        s->nomem |= good && rp_vec_push(&list, a, NULL) != RP_OK;
        good = good && !s->nomem;
        scan_char(s, ',');
    }
    out->n = (uint32_t)list.n;
    out->aliases = scan_keep(s, list.at, list.n, sizeof *list.at);
    rp_vec_release(&list);
    return good;
}

/* ---- shardings ---- */

static bool scan_sharding_type(struct scan *s, int64_t *type)
{
    for (*type = 0; *type < RP_SHARDING_TYPES; ++*type) {
        const char *word = rp_sharding_word((unsigned)*type);

        if (*word && scan_text(s, word))
            return true;
    }
    return false;
}

static bool scan_sharding(struct scan *s, unsigned depth, struct rp_sharding *out);

static bool sharding_kind(struct scan *s, unsigned depth, struct rp_sharding *out)
{
    int64_t type, device;

    scan_blank(s);
    if (s->at < s->end && *s->at == '{') {
        /* "{...}, {...}" */
        RP_VEC(struct rp_sharding) parts = {0};
        bool good = true;

        out->type = RP_SHARDING_TUPLE;
        do {
            struct rp_sharding part;

            good = depth && scan_sharding(s, depth - 1, &part);
            s->nomem |= good && rp_vec_push(&parts, part, NULL) != RP_OK;
            good = good && !s->nomem;
        } while (good && scan_char(s, ','));
        out->nparts = parts.n;
        out->parts = scan_keep(s, parts.at, parts.n, sizeof *parts.at);
        rp_vec_release(&parts);
        return good;
    }
    if (scan_text(s, "devices=[")) {
        /* "2,1]<=[4,2]T(1,0)" or "2,1]0,1" after "devices=[" */
        struct int_buffer b = {.few = s->few};

        out->type = RP_SHARDING_OTHER;
        s->at--;
        if (!scan_list(s, '[', ']', &out->tiles))
            return false;
        if (scan_text(s, "<="))
            return scan_reshape(s, &out->dims, &out->perm);
        bool good = scan_ints(s, &b);
        out->devices.n = b.n;
        out->devices.at = buffer_keep(s, &b);
        return good;
    }
    if (!scan_sharding_type(s, &type))
        return false;
    out->type = (enum rp_sharding_type)type;
    if (type != RP_SHARDING_MAXIMAL)
        return true;
    if (!scan_text(s, "device=") || !scan_int(s, &device))
        return false;
    out->devices = (struct rp_int_list){scan_keep(s, &device, 1, sizeof device), 1};
    return true;
}

/* "manual, replicated}" after "last_tile_dims={" */
static bool sharding_last(struct scan *s, struct rp_sharding *out)
{
    struct int_buffer b = {.few = s->few};
    int64_t type;
    bool good;

    do {
        good = scan_sharding_type(s, &type) && buffer_push(s, &b, type);
    } while (good && scan_char(s, ','));
    out->last.n = b.n;
    out->last.at = buffer_keep(s, &b);
    return good && scan_char(s, '}');
}

static bool scan_sharding(struct scan *s, unsigned depth, struct rp_sharding *out)
{
    memset(out, 0, sizeof *out);
    if (!scan_char(s, '{') || !sharding_kind(s, depth, out))
        return false;
    out->last_replicate = scan_text(s, "last_tile_dim_replicate");
    if (scan_text(s, "last_tile_dims={") && !sharding_last(s, out))
        return false;
    out->grouped = scan_text(s, "shard_as ");
    out->shard_like = !out->grouped && scan_text(s, "shard_like ");
    out->grouped |= out->shard_like;
    if (out->grouped && !scan_int(s, &out->group))
        return false;
    return scan_char(s, '}');
}

static bool parse_sharding(struct scan *s, struct rp_attr *out)
{
    struct rp_sharding sharding;

    if (!scan_sharding(s, RP_SHARDING_DEPTH, &sharding))
        return false;
    out->n = 1;
    out->sharding = scan_keep(s, &sharding, 1, sizeof sharding);
    return true;
}

/* ---- windows ---- */

static bool parse_window(struct scan *s, struct rp_attr *out)
{
    struct rp_window w;

    if (!rp_window_parse(s->at, (size_t)(s->end - s->at), &w))
        return false;
    s->at = s->end;
    *out = rp_attr_of_window(s->p, &w);
    return true;
}

static bool parse_conv_dims(struct scan *s, struct rp_attr *out)
{
    struct rp_conv_dims dims;

    if (!rp_conv_dims_parse(s->at, (size_t)(s->end - s->at), &dims))
        return false;
    s->at = s->end;
    *out = rp_attr_of_conv_dims(s->p, &dims);
    return true;
}

/* ---- all types ---- */

typedef bool parse_fn(struct scan *s, struct rp_attr *out);

static parse_fn *const parsers[] = {
    [RP_VALUE_FLAG] = parse_flag,
    [RP_VALUE_INT] = parse_int,
    [RP_VALUE_FLOAT] = parse_float,
    [RP_VALUE_WORD] = parse_string,
    [RP_VALUE_STRING] = parse_string,
    [RP_VALUE_CONFIG] = parse_string,
    [RP_VALUE_INTS] = parse_ints,
    [RP_VALUE_PAIRS] = parse_pairs,
    [RP_VALUE_SLICES] = parse_slices,
    [RP_VALUE_PADDING] = parse_padding,
    [RP_VALUE_CONV_DIMS] = parse_conv_dims,
    [RP_VALUE_WORDS] = parse_words,
    [RP_VALUE_MAP] = parse_map,
    [RP_VALUE_WINDOW] = parse_window,
    [RP_VALUE_GROUPS] = parse_groups,
    [RP_VALUE_ALIASES] = parse_aliases,
    [RP_VALUE_SHARDING] = parse_sharding,
    [RP_VALUE_SHAPES] = NULL,
};

struct rp_attr rp_attr_parse(struct rp_program *p, uint32_t key, const char *at, size_t n)
{
    enum rp_value_type type = rp_attr_type(key);
    struct rp_attr out = {.n = 0};
    struct scan s; /* it is not cleared as a whole, because there are many attributes */

    s.at = at;
    s.end = at + n;
    s.p = p;
    s.nomem = false;

    if (!n || !parsers[type] || !parsers[type](&s, &out) || !scan_end(&s))
        out = rp_attr_bytes(key, RP_VALUE_TEXT, at, n);
    else
        out.type = (uint8_t)type;
    out.key = key;
    return s.nomem ? rp_attr_bytes(key, RP_VALUE_TEXT, NULL, 1) : out; /* refused when added */
}
