/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads dag.gml, which is GML with one word per line: "node [ id 3 label "net/conv" ]", "edge [
 * source 3 target 4 ]". The rings are the texts that NCCL logs, "3[3000] -> 0[2000] [send] via
 * NET/Socket/0", in a JSON object by channel; only these texts count, so the file is searched for
 * them.
 */
#include "job/records.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NODES (1u << 24)
RP_LIMIT(MOST_NODES, "nodes", "larger numbers are refused");

struct scan {
    const char *text, *at, *end;
};

/* Finds the next word, a bracket, or a text in quotes (without them). */
static bool next_word(struct scan *s, const char **word, size_t *len)
{
    while (s->at < s->end && (unsigned char)*s->at <= ' ')
        s->at++;
    if (s->at == s->end)
        return false;
    *word = s->at;
    if (*s->at == '"') {
        const char *close = memchr(s->at + 1, '"', (size_t)(s->end - s->at - 1));

        *word = s->at + 1;
        s->at = close ? close + 1 : s->end;
        *len = (size_t)((close ? close : s->end) - *word);
        return true;
    }
    if (*s->at == '[' || *s->at == ']')
        s->at++;
    else
        while (s->at < s->end && (unsigned char)*s->at > ' ' && *s->at != '[' && *s->at != ']')
            s->at++;
    *len = (size_t)(s->at - *word);
    return true;
}

static bool is_word(const char *word, size_t len, const char *text)
{
    return strlen(text) == len && !memcmp(word, text, len);
}

static int64_t number_of(const char *word, size_t len)
{
    int64_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (word[i] < '0' || word[i] > '9' || n > MOST_NODES)
            return -1;
        n = 10 * n + word[i] - '0';
    }
    return len ? n : -1;
}

int64_t rp_job_tensor_of(const char *label)
{
    static const char *const signs[] = {"PushPull_",  "PushPull.",  "Allreduce_",
                                        "Allreduce.", "allreduce_", "allreduce."};

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        const char *at = strstr(label, signs[i]);

        while (at && strstr(at + 1, signs[i]))
            at = strstr(at + 1, signs[i]);
        at = at ? at + strlen(signs[i]) : NULL;
        if (at && *at >= '0' && *at <= '9')
            return strtol(at, NULL, 10);
    }
    return -1;
}

struct gml {
    struct scan scan;
    RP_VEC(const char *) label; /* by id */
    struct rp_job_rank *out;
    struct rp_err *err;
};

static enum rp_code fail(const struct gml *g, const char *at, const char *what)
{
    return rp_text_error(g->err, RP_FORMAT, g->scan.text, (size_t)(g->scan.end - g->scan.text),
                         (size_t)(at - g->scan.text), "%s", what);
}

static enum rp_code add_node(struct gml *g, const char *at, int64_t id, const char *label,
                             size_t len)
{
    /* A file of n bytes cannot describe more than n nodes, so a larger number would only cost
       memory. */
    if (id < 0 || id >= g->scan.end - g->scan.text)
        return fail(g, at, "a node needs an id of 0 or more, and not more than there are nodes");
    while (g->label.n <= (size_t)id)
        RP_TRY(rp_vec_push(&g->label, NULL, g->err));
    const char *copy = rp_arena_copy(&g->out->arena, label, len);
    RP_TRY(rp_err_need(copy, g->err, "reading a graph"));
    g->label.at[id] = copy;
    return RP_OK;
}

static enum rp_code add_edge(struct gml *g, const char *at, int64_t source, int64_t target)
{
    struct rp_job_edge e;

    if (source < 0 || target < 0 || (size_t)source >= g->label.n || (size_t)target >= g->label.n ||
        !g->label.at[source] || !g->label.at[target])
        return fail(g, at, "an edge needs the ids of two nodes defined before it");
    e.from = g->label.at[source];
    e.to = g->label.at[target];
    e.from_tensor = rp_job_tensor_of(e.from);
    e.to_tensor = rp_job_tensor_of(e.to);
    return rp_vec_push(&g->out->edges, e, g->err);
}

/* Reads the pairs of a key and a value after "node [" or "edge [" up to ']'. */
static enum rp_code read_item(struct gml *g, bool is_node)
{
    const char *word, *value, *label = "", *at = g->scan.at;
    size_t len, vlen, label_len = 0;
    int64_t id = -1, source = -1, target = -1;

    for (;;) {
        if (!next_word(&g->scan, &word, &len))
            return fail(g, at, "the file ends inside a node or an edge");
        if (is_word(word, len, "]") && word[-1] != '"')
            break;
        if (!next_word(&g->scan, &value, &vlen))
            return fail(g, word, "a key without a value");
        if (is_word(word, len, "id"))
            id = number_of(value, vlen);
        else if (is_word(word, len, "source"))
            source = number_of(value, vlen);
        else if (is_word(word, len, "target"))
            target = number_of(value, vlen);
        else if (is_word(word, len, "label")) {
            label = value;
            label_len = vlen;
        }
    }
    return is_node ? add_node(g, at, id, label, label_len) : add_edge(g, at, source, target);
}

static enum rp_code read_gml(struct gml *g)
{
    const char *word, *open;
    size_t len, open_len;

    if (!next_word(&g->scan, &word, &len) || !is_word(word, len, "graph"))
        return fail(g, g->scan.text, "a graph begins with 'graph ['");
    while (next_word(&g->scan, &word, &len)) {
        bool is_node = is_word(word, len, "node");

        if (!is_node && !is_word(word, len, "edge"))
            continue;
        if (!next_word(&g->scan, &open, &open_len) || !is_word(open, open_len, "["))
            return fail(g, word, "'[' is expected after it");
        RP_TRY(read_item(g, is_node));
    }
    return RP_OK;
}

enum rp_code rp_job_read_graph(const char *text, size_t len, struct rp_job_rank *out,
                               struct rp_err *err)
{
    struct gml g = {.scan = {text, text, text + len}, .out = out, .err = err};
    enum rp_code code = read_gml(&g);

    rp_vec_release(&g.label);
    return code;
}

/* ------------------------------------------------------------------ rings */

struct pair {
    int32_t channel, from, to;
};

/* Reads "3[3000] -> 0[2000]" from its first digit; false if it is something else. */
static bool read_pair(struct scan *s, struct pair *out)
{
    const char *p = s->at;
    int32_t ends[2];

    for (int i = 0; i < 2; i++) {
        const char *digits = p;

        while (p < s->end && *p >= '0' && *p <= '9')
            p++;
        ends[i] = (int32_t)number_of(digits, (size_t)(p - digits));
        if (ends[i] < 0 || p == s->end || *p != '[')
            return false;
        while (p < s->end && *p != ']')
            p++;
        if (i == 0) {
            static const char arrow[] = "] -> ";
            size_t len = sizeof arrow - 1;

            if ((size_t)(s->end - p) < len || memcmp(p, arrow, len) != 0)
                return false;
            p += len;
        }
    }
    out->from = ends[0];
    out->to = ends[1];
    s->at = p;
    return true;
}

/* Finds the part of the file that is the object after "Ring". */
static bool find_rings(struct scan *s)
{
    static const char key[] = "\"Ring\"";

    for (const char *p = s->text; p + sizeof key <= s->end; p++)
        if (!memcmp(p, key, sizeof key - 1)) {
            s->at = p + sizeof key - 1;
            const char *close = memchr(s->at, '}', (size_t)(s->end - s->at));
            s->end = close ? close : s->end;
            return true;
        }
    return false;
}

/* Finds the rank that is in every link; of two links that are opposite, the sender's. */
static int32_t common_rank(const struct pair *list, size_t n)
{
    int32_t candidates[2] = {list[0].from, list[0].to};
    size_t i, k;

    for (k = 0; k < 2; k++) {
        for (i = 0; i < n && (list[i].from == candidates[k] || list[i].to == candidates[k]); i++)
            ;
        if (i == n)
            return candidates[k];
    }
    return -1;
}

enum rp_code rp_job_read_rings(const char *text, size_t len, struct rp_job_rank *out,
                               struct rp_err *err)
{
    enum { MOST = 1024 };
    struct scan s = {text, text, text + len};
    struct pair list[MOST];
    size_t i, n = 0;

    out->number = -1;
    if (!find_rings(&s))
        return rp_err_set(err, RP_FORMAT, "the file has no \"Ring\"");

    /* Reads all links of the file with their channels: "\"0\":\"3[…] -> …,…\"". */
    int32_t channel = -1;
    while (s.at < s.end) {
        struct pair p = {.channel = channel};
        if (*s.at == '"' && s.end - s.at > 2 && s.at[1] >= '0' && s.at[1] <= '9') {
            const char *close = memchr(s.at + 1, '"', (size_t)(s.end - s.at - 1));
            int64_t number = close ? number_of(s.at + 1, (size_t)(close - s.at - 1)) : -1;
            if (number >= 0) {
                channel = (int32_t)number;
                s.at = close + 1;
                continue;
            }
        }
        if (*s.at >= '0' && *s.at <= '9' && channel >= 0 && n < MOST && read_pair(&s, &p))
            list[(n)++] = p;
        else
            s.at++;
    }
    if (!n)
        return RP_OK;
    out->number = common_rank(list, n);
    for (i = 0; i < n; i++)
        if (list[i].from == out->number) {
            struct rp_job_link link = {list[i].channel, list[i].to};

            RP_TRY(rp_vec_push(&out->links, link, err));
        }
    return RP_OK;
}
