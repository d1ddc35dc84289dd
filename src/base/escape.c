/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each language is a row: its quotes and a function that gives the replacement of a character. Runs
 * of unchanged characters are handed on together. It takes one pass and allocates nothing.
 */
#include "base/escape.h"

#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

#define MOST  24 /* the most bytes that replace one character, with a NUL */
#define KEPT  SIZE_MAX
#define UNFIT "\xef\xbf\xbd" /* U+FFFD */

/* One character: its code (RP_UTF8_BAD for a byte that is not UTF-8) and its bytes. */
struct character {
    uint32_t code;
    const unsigned char *at;
    size_t n;
};

/* Writes the replacement of a character and returns its length, or KEPT. */
typedef size_t replace_fn(const struct character *c, char out[MOST]);

size_t rp_utf8_decode(const char *s, const char *end, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)s;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    uint32_t c = len > 1 ? *p & (0x7fu >> len) : *p;

    if (len > (size_t)(end - s))
        len = 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            len = 0;
        else
            c = c << 6 | (p[i] & 0x3f);
    }
    if (!len || c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        *code = RP_UTF8_BAD;
        return 1;
    }
    *code = c;
    return len;
}

size_t rp_utf8_encode(char *to, uint32_t c)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = n; i > 1; i--, c >>= 6)
        to[i - 1] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(n > 1 ? (0xf00 >> n & 0xff) | c : c);
    return n;
}

bool rp_utf8_steers(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* ------------------------------------------------------------------ what stands for a character */

static size_t put_text(char out[MOST], const char *text)
{
    return (size_t)snprintf(out, MOST, "%s", text);
}

static size_t in_line(const struct character *c, char out[MOST])
{
    if (c->code == '\n' || c->code == '\t' || c->code == '\r')
        return put_text(out, " ");
    return c->code == RP_UTF8_BAD || rp_utf8_steers(c->code) ? put_text(out, UNFIT) : KEPT;
}

static size_t in_message(const struct character *c, char out[MOST])
{
    size_t n = 0;

    if (c->code == '\n' || (c->code != RP_UTF8_BAD && !rp_utf8_steers(c->code)))
        return KEPT;
    for (size_t i = 0; i < c->n; i++)
        n += (size_t)snprintf(out + n, MOST - n, "\\x%02x", c->at[i]);
    return n;
}

static bool is_blank(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x202f || c == 0x205f || c == 0x3000;
}

static size_t in_word(const struct character *c, char out[MOST])
{
    return is_blank(c->code) ? put_text(out, "_") : in_line(c, out);
}

static size_t in_name(const struct character *c, char out[MOST])
{
    bool fits = (c->code >= '0' && c->code <= '9') || (c->code >= 'a' && c->code <= 'z') ||
                (c->code >= 'A' && c->code <= 'Z') || c->code == '_';

    return fits ? KEPT : put_text(out, "_");
}

static size_t in_hlo(const struct character *c, char out[MOST])
{
    return c->code == '.' || c->code == '-' ? KEPT : in_name(c, out);
}

static size_t in_shell(const struct character *c, char out[MOST])
{
    return c->code == '\'' ? put_text(out, "'\\''") : in_line(c, out);
}

/* Puts a '\' before '"' and '\'; returns 0 for other characters. */
static size_t behind_backslash(const struct character *c, char out[MOST])
{
    if (c->code != '"' && c->code != '\\')
        return 0;
    out[0] = '\\';
    out[1] = (char)c->code;
    return 2;
}

static size_t in_python(const struct character *c, char out[MOST])
{
    if (c->code == RP_UTF8_BAD)
        return (size_t)snprintf(out, MOST, "\\udc%02x", *c->at);
    if (rp_utf8_steers(c->code))
        return (size_t)snprintf(out, MOST, c->code < 0x100 ? "\\x%02x" : "\\u%04x", c->code);
    return behind_backslash(c, out) ? 2 : KEPT;
}

static size_t in_json(const struct character *c, char out[MOST])
{
    static const char letters[] = "\b\f\n\r\t", names[] = "bfnrt";
    const char *known = c->code && c->code < 0x20 ? strchr(letters, (int)c->code) : NULL;

    if (known)
        return (size_t)snprintf(out, MOST, "\\%c", names[known - letters]);
    if (c->code == RP_UTF8_BAD)
        return put_text(out, "\\ufffd");
    if (rp_utf8_steers(c->code))
        return (size_t)snprintf(out, MOST, "\\u%04x", c->code);
    return behind_backslash(c, out) ? 2 : KEPT;
}

static size_t in_script(const struct character *c, char out[MOST])
{
    if (c->code == '<' || c->code == '>' || c->code == '&' || c->code == '\'')
        return (size_t)snprintf(out, MOST, "\\u%04x", c->code);
    return in_json(c, out);
}

static size_t in_dot(const struct character *c, char out[MOST])
{
    if (c->code == '&') /* Graphviz interprets the entities of HTML */
        return put_text(out, "&amp;");
    return behind_backslash(c, out) ? 2 : in_line(c, out);
}

static size_t in_markup(const struct character *c, char out[MOST])
{
    switch (c->code) {
    case '<':
        return put_text(out, "&lt;");
    case '>':
        return put_text(out, "&gt;");
    case '&':
        return put_text(out, "&amp;");
    case '"':
        return put_text(out, "&quot;");
    case '\'':
        return put_text(out, "&#39;");
    default:
        return (c->code & 0xfffe) == 0xfffe ? put_text(out, UNFIT) : in_line(c, out);
    }
}

/* Quotes may contain line breaks and tabs. */
static size_t in_csv(const struct character *c, char out[MOST])
{
    if (c->code == '\n' || c->code == '\t' || c->code == '\r')
        return KEPT;
    return c->code == '"' ? put_text(out, "\"\"") : in_line(c, out);
}

static size_t in_proto(const struct character *c, char out[MOST])
{
    size_t n = 0;

    if (c->code == '\n')
        return put_text(out, "\\n");
    if (c->code >= ' ' && c->code < 0x7f)
        return behind_backslash(c, out) ? 2 : KEPT;
    for (size_t i = 0; i < c->n; i++)
        n += (size_t)snprintf(out + n, MOST - n, "\\%03o", c->at[i]);
    return n;
}

static size_t in_mlir(const struct character *c, char out[MOST])
{
    size_t n = 0;

    if (c->code >= ' ' && c->code < 0x7f && c->code != '"' && c->code != '\\')
        return KEPT;
    for (size_t i = 0; i < c->n; i++)
        n += (size_t)snprintf(out + n, MOST - n, "\\%02X", c->at[i]);
    return n;
}

static size_t in_metrics(const struct character *c, char out[MOST])
{
    if (c->code == '\n')
        return put_text(out, "\\n");
    return behind_backslash(c, out) ? 2 : in_line(c, out);
}

/* Bits of the characters from ' ' to '_'. */
#define BIT(c)  (UINT64_C(1) << ((c) - ' '))
#define STRINGS (BIT('"') | BIT('\\'))
#define TAGS    (BIT('<') | BIT('>') | BIT('&') | BIT('\''))

static const struct {
    const char *quote;
    uint64_t asked; /* the printable ASCII characters up to '_' for which `replace` is called; above
                       that, all or none */
    replace_fn *replace;
} rows[RP_LANGUAGES] = {
    [RP_IN_LINE] = {"", 0, in_line},
    [RP_IN_MESSAGE] = {"", 0, in_message},
    [RP_IN_WORD] = {"", BIT(' '), in_word},
    [RP_IN_NAME] = {"", UINT64_MAX, in_name},
    [RP_IN_HLO] = {"", UINT64_MAX, in_hlo},
    [RP_IN_SHELL] = {"'", BIT('\''), in_shell},
    [RP_IN_PYTHON] = {"\"", STRINGS, in_python},
    [RP_IN_JSON] = {"\"", STRINGS, in_json},
    [RP_IN_STRING] = {"", STRINGS, in_json},
    [RP_IN_SCRIPT] = {"\"", STRINGS | TAGS, in_script},
    [RP_IN_DOT] = {"", STRINGS | BIT('&'), in_dot},
    [RP_IN_MARKUP] = {"", BIT('"') | TAGS, in_markup},
    [RP_IN_CSV] = {"", BIT('"'), in_csv},
    [RP_IN_PROTO] = {"\"", STRINGS, in_proto},
    [RP_IN_MLIR] = {"\"", STRINGS, in_mlir},
    [RP_IN_METRICS] = {"", STRINGS, in_metrics},
};

/* ------------------------------------------------------------------ texts */

static size_t skip_digits(const char *text, size_t at, size_t n)
{
    while (at < n && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* Whether it is like "-12", "+0.5" or "-1e-9", which a spreadsheet reads as a number. */
static bool is_number(const char *text, size_t n)
{
    size_t first = n && (text[0] == '-' || text[0] == '+'), at = skip_digits(text, first, n);

    if (at == first)
        return false;
    if (at < n && text[at] == '.')
        at = skip_digits(text, at + 1, n);
    if (at + 1 < n && (text[at] | 0x20) == 'e') {
        at += 1 + (text[at + 1] == '-' || text[at + 1] == '+');
        at = skip_digits(text, at, n);
    }
    return at == n;
}

static bool is_formula(const char *text, size_t n)
{
    return n && memchr("=+-@\t\r\n", text[0], 7) && !is_number(text, n);
}

/* Whether it is a word that no shell splits or expands. */
static bool is_shell_word(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct character c = {.code = (unsigned char)text[i]};
        char out[MOST];

        if (in_name(&c, out) != KEPT && !memchr("@%+=:,./-", text[i], 9))
            return false;
    }
    return true;
}

/* Returns the quotes of the language; a word of the shell and a cell have them only if
   necessary. */
static const char *quotes_of(enum rp_language language, const char *text, size_t n)
{
    if (language == RP_IN_SHELL && n && is_shell_word(text, n))
        return "";
    if (language != RP_IN_CSV)
        return rows[language].quote;
    for (size_t i = 0; i < n; i++)
        if (memchr(",\"\r\n", text[i], 4))
            return "\"";
    return n ? ""
             : "\""; /* an empty text is "", because an empty cell is a value that is not known */
}

static bool is_kept(uint64_t asked, char c)
{
    if (c < ' ' || c > '~')
        return false;
    return c > '_' ? asked != UINT64_MAX : !(asked >> (c - ' ') & 1);
}

/* Finds the next character that is replaced, or `end`: gives its length, and its replacement in out
   with its length. */
static const char *next_replaced(enum rp_language language, const char *text, const char *end,
                                 size_t *len, char out[MOST], size_t *nout)
{
    uint64_t asked = rows[language].asked;
    struct character c;

    for (; text < end; text += c.n) {
        c.n = 1;
        if (is_kept(asked, *text))
            continue;
        c.at = (const unsigned char *)text;
        *len = c.n = rp_utf8_decode(text, end, &c.code);
        *nout = rows[language].replace(&c, out);
        if (*nout != KEPT)
            break;
    }
    return text;
}

void rp_escape(enum rp_language language, const char *text, size_t n, rp_escape_sink *put, void *to)
{
    const char *end = text + n, *quotes = quotes_of(language, text, n);
    char out[MOST];
    size_t len, nout;

    put(to, quotes, strlen(quotes));
    if (language == RP_IN_CSV && is_formula(text, n))
        put(to, "'", 1);
    while (text < end) {
        const char *at = next_replaced(language, text, end, &len, out, &nout);
        put(to, text, (size_t)(at - text));
        if (at == end)
            break;
        put(to, out, nout);
        text = at + len;
    }
    put(to, quotes, strlen(quotes));
}

struct held {
    char *text;
    size_t n;
};

static void hold_piece(void *to, const char *bytes, size_t n)
{
    struct held *h = to;

    if (h->text)
        memcpy(h->text + h->n, bytes, n);
    h->n += n;
}

const char *rp_arena_escaped(struct rp_arena *arena, enum rp_language language, const char *text)
{
    struct held h = {0};

    rp_escape(language, text, strlen(text), hold_piece, &h);
    h.text = rp_arena_alloc(arena, h.n + 1, 1);
    if (!h.text)
        return "";
    h.n = 0;
    rp_escape(language, text, strlen(text), hold_piece, &h);
    h.text[h.n] = '\0';
    return h.text;
}

bool rp_escape_needless(enum rp_language language, const char *text, size_t n)
{
    char out[MOST];
    size_t len, nout;

    if (language == RP_IN_CSV && (is_formula(text, n) || *quotes_of(language, text, n)))
        return false;
    return next_replaced(language, text, text + n, &len, out, &nout) == text + n;
}

/* ------------------------------------------------------------------ file names */

#define CHECKSUM 8 /* the number of its digits at the end of a name */

static bool fits_file_name(uint32_t code, bool first)
{
    if ((code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') ||
        (code >= 'A' && code <= 'Z') || code == '_')
        return true;
    if (code == '.' || code == '-' || code == '+' || code == '=' || code == ',' || code == '@')
        return !first;
    return code != RP_UTF8_BAD && code > 0xa0 && !rp_utf8_steers(code);
}

void rp_file_name(char out[RP_FILE_NAME_MAX], const char *text)
{
    size_t n = 0, len, most = RP_FILE_NAME_MAX - CHECKSUM - 2;
    bool changed = !*text;
    const char *at = text;
    uint32_t code;

    for (; *at; at += len) {
        len = rp_utf8_next(at, &code);
        if (n + len > most)
            break;
        if (fits_file_name(code, n == 0)) {
            memcpy(out + n, at, len);
            n += len;
        } else {
            out[n++] = '_';
            changed = true;
        }
    }
    if (!n)
        out[n++] = '_';
    out[n] = '\0';
    if (changed || *at) {
        char digits[RP_SHA256_TEXT];
        struct rp_sha256 sum;

        rp_sha256_begin(&sum);
        rp_sha256_add(&sum, text, strlen(text));
        rp_sha256_text(&sum, digits);
        snprintf(out + n, RP_FILE_NAME_MAX - n, ".%.*s", CHECKSUM, digits);
    }
}
