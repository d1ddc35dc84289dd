/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request ends with an empty line. Each line ends with CR LF and contains no other control
 * character; there is one Host, and at most one Origin.
 */
#include "http/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct text {
    const char *at;
    size_t n;
};

struct headers {
    struct text host, origin, site, accept;
    unsigned hosts, origins;
    bool has_body;
};

const char *rp_http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } known[] = {{200, "OK"},
                 {400, "Bad Request"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {414, "URI Too Long"},
                 {431, "Request Header Fields Too Large"}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].status == status)
            return known[i].reason;
    return "Internal Server Error";
}

static bool equals(struct text text, const char *word)
{
    return text.n == strlen(word) && !strncasecmp(text.at, word, text.n);
}

/* Blanks around a value do not belong to it. */
static struct text trimmed(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct text){at, (size_t)(end - at)};
}

static bool is_name(struct text name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!(name.at[i] > ' ' && name.at[i] < 0x7f) || strchr("\"(),/:;<=>?@[\\]{}", name.at[i]))
            return false;
    return name.n > 0;
}

/* Reads one line, without its end. */
static bool read_header(const char *line, const char *end, struct headers *h)
{
    const char *colon = memchr(line, ':', (size_t)(end - line));
    struct text name = {line, colon ? (size_t)(colon - line) : 0};

    if (!colon || !is_name(name))
        return false;
    struct text value = trimmed(colon + 1, end);
    if (equals(name, "host")) {
        h->host = value;
        h->hosts++;
    } else if (equals(name, "origin")) {
        h->origin = value;
        h->origins++;
    } else if (equals(name, "accept")) {
        h->accept = value;
    } else if (equals(name, "sec-fetch-site")) {
        h->site = value;
    } else if (equals(name, "transfer-encoding") || equals(name, "upgrade") ||
               (equals(name, "content-length") && !equals(value, "0"))) {
        h->has_body = true;
    }
    return true;
}

static bool read_headers(const char *at, const char *end, struct headers *h)
{
    while (at < end) {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);

        if (!line_end || !read_header(at, line_end, h))
            return false;
        at = line_end + 2;
    }
    return h->hosts == 1 && h->origins <= 1 && !h->has_body;
}

/* Whether CR and LF only occur together, and NUL and other control characters never. */
static bool is_clean(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c == '\r' && (i + 1 == n || bytes[i + 1] != '\n'))
            return false;
        if (c == '\n' && (!i || bytes[i - 1] != '\r'))
            return false;
        if ((c < ' ' && c != '\r' && c != '\n' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* Whether it is "127.0.0.1:PORT" or "localhost:PORT", with a prefix. */
static bool is_ours(struct text text, const char *prefix, unsigned port)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char wanted[64];

    for (size_t i = 0; i < 2; i++) {
        snprintf(wanted, sizeof wanted, "%s%s:%u", prefix, names[i], port);
        if (equals(text, wanted))
            return true;
    }
    return false;
}

static bool is_allowed(const struct headers *h, const struct rp_http_guard *guard)
{
    return is_ours(h->host, "", guard->port) &&
           (!h->origins || is_ours(h->origin, "http://", guard->port)) &&
           (!h->site.n || equals(h->site, "same-origin") || equals(h->site, "none"));
}

/* Compares in a time that does not tell how many characters are right. */
static bool has_token(const char *at, const char *end, const char *token)
{
    unsigned differs = 0;

    if (end - at < RP_HTTP_TOKEN)
        return false;
    for (size_t i = 0; i < RP_HTTP_TOKEN; i++)
        differs |= (unsigned char)at[i] ^ (unsigned char)token[i];
    return !differs;
}

static bool copy_text(char *to, size_t size, const char *at, const char *end)
{
    size_t n = (size_t)(end - at);

    if (n >= size)
        return false;
    memcpy(to, at, n);
    to[n] = '\0';
    return true;
}

/* Reads "/TOKEN/path?query", or "/path?query" if there is no token. */
static int read_target(const char *at, const char *end, const struct rp_http_guard *guard,
                       struct rp_http_request *out)
{
    if (at == end || *at != '/')
        return 400;
    at++;
    if (guard->token[0]) {
        if (!has_token(at, end, guard->token))
            return 403;
        at += RP_HTTP_TOKEN;
        if (at == end || *at != '/')
            return 403; /* without the last slash, the page would not find its answers */
        at++;
    }
    const char *question = memchr(at, '?', (size_t)(end - at));
    if (!copy_text(out->path, sizeof out->path, at, question ? question : end) ||
        !copy_text(out->query, sizeof out->query, question ? question + 1 : end, end))
        return 414;
    return 200;
}

int rp_http_parse(const char *bytes, size_t n, const struct rp_http_guard *guard,
                  struct rp_http_request *out, size_t *used)
{
    const char *end = memmem(bytes, n, "\r\n\r\n", 4);
    struct headers h = {0};

    if (!end)
        return n >= RP_HTTP_REQUEST_MOST ? 431 : 0;
    *used = (size_t)(end - bytes) + 4;
    const char *line = memmem(bytes, n, "\r\n", 2);
    if (!is_clean(bytes, *used) || !read_headers(line + 2, end + 2, &h))
        return 400;
    if (!is_allowed(
            &h,
            guard)) /* checked before the token, so that requests from elsewhere learn nothing */
        return 403;
    out->accept[0] = '\0';
    if (h.accept.n < sizeof out->accept)
        snprintf(out->accept, sizeof out->accept, "%.*s", (int)h.accept.n, h.accept.at);

    /* Reads "GET /target HTTP/1.1", without its end. */
    const char *blank = memchr(bytes, ' ', (size_t)(line - bytes));
    struct text method = {bytes, blank ? (size_t)(blank - bytes) : 0};
    const char *second = blank ? memchr(blank + 1, ' ', (size_t)(line - blank - 1)) : NULL;
    if (!second || !is_name(method) || line - second != 9 || memcmp(second, " HTTP/1.1", 9) != 0)
        return 400;
    out->head = method.n == 4 && !memcmp(bytes, "HEAD", 4);
    if (!out->head && (method.n != 3 || memcmp(bytes, "GET", 3) != 0))
        return 405;
    return read_target(blank + 1, second, guard, out);
}

double rp_http_weight(const struct rp_http_request *request, const char *type)
{
    const char *at = request->accept, *end, *slash = strchr(type, '/');
    size_t best = 0;
    double found = *at ? 0 : 1;

    for (; *at; at = end + (*end == ',')) { /* in "a/b;v=1;q=0.5, a/c" the closest type counts */
        struct text name = trimmed(at, at + strcspn(at, ",;"));
        size_t close = equals(name, type) ? 3
                       : name.n == (size_t)(slash - type) + 2 &&
                               !strncasecmp(name.at, type, name.n - 1) && name.at[name.n - 1] == '*'
                           ? 2
                           : equals(name, "*/*");

        end = at + strcspn(at, ",");
        if (close <= best)
            continue;
        best = close;
        found = 1;
        const char *weight = memmem(at, (size_t)(end - at), "q=", 2);
        if (weight && (sscanf(weight, "q=%5lf", &found) != 1 || !(found >= 0 && found <= 1)))
            found = 0;
    }
    return found;
}
