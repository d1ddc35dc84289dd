/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Width is counted per code point from two short range tables (zero and two columns), which cover
 * the names of kernels, files and people; wcwidth() would depend on the caller's locale. Everything
 * is one pass over the text and allocates nothing.
 */
#include "result/print_text.h"

#include "base/escape.h"

#include <stdbool.h>
#include <string.h>

struct range {
    uint32_t first, last;
};

static const struct range zero_wide[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},   {0x0610, 0x061a},
    {0x064b, 0x065f}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},   {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff},   {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};

static const struct range two_wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f3fa}, {0x1f400, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
    {0x20000, 0x3fffd},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool in_ranges(uint32_t code, const struct range *ranges, size_t n)
{
    for (size_t i = 0; i < n && code >= ranges[i].first; i++)
        if (code <= ranges[i].last)
            return true;
    return false;
}

/* Gives what is shown for the next character: its bytes, their number and columns. Returns its
   length in the text. */
static size_t next_shown(const char *s, const char **bytes, size_t *nbytes, size_t *width)
{
    uint32_t code;
    size_t len = rp_utf8_next(s, &code);

    *bytes = s;
    *nbytes = len;
    *width = 1;
    if (code == '\n' || code == '\t' || code == '\r') {
        *bytes = " ";
        *nbytes = 1;
    } else if (rp_utf8_steers(code) || code == RP_UTF8_BAD) {
        *bytes = "\xef\xbf\xbd";
        *nbytes = 3;
    } else if (code >= 0x300) {
        *width = in_ranges(code, zero_wide, COUNT(zero_wide)) ? 0
                 : in_ranges(code, two_wide, COUNT(two_wide)) ? 2
                                                              : 1;
    }
    return len;
}

size_t rp_screen_width(const char *text)
{
    const char *bytes;
    size_t nbytes, width, total = 0;

    while (*text) {
        text += next_shown(text, &bytes, &nbytes, &width);
        total += width;
    }
    return total;
}

void rp_screen_pad(struct rp_out *to, size_t n)
{
    static const char spaces[] = "                                ";

    for (; n > sizeof spaces - 1; n -= sizeof spaces - 1)
        rp_out_write(to, spaces, sizeof spaces - 1);
    rp_out_write(to, spaces, n);
}

/* Prints characters while they fit into `room` columns; moves *text on and returns the columns. */
static size_t put_head(struct rp_out *to, const char **text, size_t room)
{
    const char *bytes;
    size_t nbytes, width, used = 0;

    while (**text) {
        size_t len = next_shown(*text, &bytes, &nbytes, &width);

        if (used + width > room)
            break;
        rp_out_write(to, bytes, nbytes);
        used += width;
        *text += len;
    }
    return used;
}

size_t rp_screen_put(struct rp_out *to, const char *text, size_t width)
{
    size_t total = rp_screen_width(text), used, skipped = 0, nbytes, w;
    const char *bytes;

    if (total <= width)
        return put_head(to, &text, width);
    if (width == 0)
        return 0;
    used = put_head(to, &text, width / 2);
    rp_out_text(to, "…");
    /* the tail: everything after enough columns were left out */
    while (*text && total - used - skipped > width - used - 1) {
        text += next_shown(text, &bytes, &nbytes, &w);
        skipped += w;
    }
    return used + 1 + put_head(to, &text, width - used - 1);
}

/* ------------------------------------------------------------------ cutting what is common */

#define MAX_PIECES (RP_KEPT_WORDS + 1)

struct piece {
    size_t begin, end;
};

/* The parts of a text that are shown, in order, with an ellipsis in each gap. */
struct pieces {
    const char *text;
    size_t len, n;
    struct piece at[MAX_PIECES];
};

static bool in_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

static size_t word_begin_before(const char *text, size_t at)
{
    while (at > 0 && !in_word(text[at - 1]))
        at--;
    while (at > 0 && in_word(text[at - 1]))
        at--;
    return at > 0 && strchr("([<", text[at - 1]) ? at - 1 : at;
}

static size_t next_word_end(const char *text, size_t at)
{
    while (text[at] && !in_word(text[at]))
        at++;
    while (in_word(text[at]))
        at++;
    return at;
}

void rp_screen_keep(struct rp_kept_words *kept, const char *text, const char *other)
{
    struct rp_kept_word word = {0, 0, 1};
    size_t i = 0;

    while (text[i] && text[i] == other[i])
        i++;
    if (text[i] == other[i])
        return; /* the same text */
    while (i > 0 && in_word(text[i - 1]) && (in_word(text[i]) || !text[i]))
        i--;
    word.begin = i;
    word.end = next_word_end(text, i);
    for (i = 0; i < kept->n; i++)
        if (kept->at[i].begin == word.begin) {
            kept->at[i].count++;
            return;
        }
    if (kept->n < RP_KEPT_WORDS)
        kept->at[kept->n++] = word;
}

/* Whether an ellipsis is needed before a part: something is left out, and the text does not have
   one. */
static bool is_cut_before(const struct pieces *p, size_t i)
{
    return p->at[i].begin > (i ? p->at[i - 1].end : 0) &&
           strncmp(p->text + p->at[i].begin, "…", sizeof "…" - 1) != 0;
}

static size_t pieces_width(const struct pieces *p)
{
    size_t total = 0, at = 0;

    for (size_t i = 0; i < p->n; i++) {
        total += is_cut_before(p, i);
        for (at = p->at[i].begin; at < p->at[i].end;) {
            const char *bytes;
            size_t nbytes, width;

            at += next_shown(p->text + at, &bytes, &nbytes, &width);
            total += width;
        }
    }
    return total + (at < p->len);
}

/* Adds a part unless the whole would be too wide. */
static void pieces_add(struct pieces *p, struct piece part, size_t width)
{
    struct pieces with = *p;
    size_t i = 0;

    while (i < with.n && with.at[i].end < part.begin)
        i++;
    if (i < with.n && with.at[i].begin <= part.end) { /* they touch */
        with.at[i].begin = part.begin < with.at[i].begin ? part.begin : with.at[i].begin;
        with.at[i].end = part.end > with.at[i].end ? part.end : with.at[i].end;
        if (i + 1 < with.n && with.at[i + 1].begin <= with.at[i].end) {
            with.at[i].end = with.at[i + 1].end;
            memmove(with.at + i + 1, with.at + i + 2, (with.n - i - 2) * sizeof *with.at);
            with.n--;
        }
    } else if (with.n < MAX_PIECES) {
        memmove(with.at + i + 1, with.at + i, (with.n - i) * sizeof *with.at);
        with.at[i] = part;
        with.n++;
    }
    if (pieces_width(&with) <= width)
        *p = with;
}

#define LEAST_OF_WORD 4 /* a word cut to fewer columns is not worth showing */

/* Adds a word, or its first characters if it is too long. */
static void pieces_add_word(struct pieces *p, struct piece word, size_t width)
{
    struct pieces before = *p;

    if (word.end - word.begin > 4 * width) { /* a character has up to four bytes */
        word.end = word.begin + 4 * width;
        while (((unsigned char)p->text[word.end] & 0xc0) == 0x80)
            word.end--;
    }
    while (word.end > word.begin + LEAST_OF_WORD) {
        pieces_add(p, word, width);
        if (memcmp(p, &before, sizeof before) != 0)
            return;
        for (word.end--; ((unsigned char)p->text[word.end] & 0xc0) == 0x80;)
            word.end--;
    }
    pieces_add(p, word, width);
}

/* Lengthens the first part to the right or the last one to the left, word by word, up to `most`
   columns for the whole. */
static void pieces_grow_first(struct pieces *p, size_t most)
{
    for (;;) {
        size_t n = p->n, end = p->at[0].end;

        if (end == p->len)
            return;
        pieces_add(p, (struct piece){end, next_word_end(p->text, end)}, most);
        if (p->n < n || p->at[0].end == end)
            return;
    }
}

static void pieces_grow_last(struct pieces *p, size_t most)
{
    for (;;) {
        size_t n = p->n, begin = p->at[n - 1].begin;

        if (begin == 0)
            return;
        pieces_add(p, (struct piece){word_begin_before(p->text, begin), begin}, most);
        if (p->n < n || p->at[n - 1].begin == begin)
            return;
    }
}

/* Returns the first third of `width` columns of a text, in whole words if these are short. */
static struct piece text_head(const char *text, size_t width)
{
    size_t end = next_word_end(text, 0), next, used = 0;
    const char *bytes;
    size_t nbytes, w;

    while (text[end] && (next = next_word_end(text, end)) <= width / 3)
        end = next;
    if (end <= width / 2)
        return (struct piece){0, end};
    width /= 3;
    end = 0;
    for (; text[end]; used += w, end += next) {
        next = next_shown(text + end, &bytes, &nbytes, &w);
        if (used + w > width)
            break;
    }
    return (struct piece){0, end};
}

static size_t pieces_put(struct rp_out *to, const struct pieces *p)
{
    size_t at = 0;

    for (size_t i = 0; i < p->n; i++) {
        if (is_cut_before(p, i))
            rp_out_text(to, "…");
        for (at = p->at[i].begin; at < p->at[i].end;) {
            const char *bytes;
            size_t nbytes, width;

            at += next_shown(p->text + at, &bytes, &nbytes, &width);
            rp_out_write(to, bytes, nbytes);
        }
    }
    if (at < p->len)
        rp_out_text(to, "…");
    return pieces_width(p);
}

/* Returns the end of a text that is shown if possible: its last word, or a short "<…>" of its
   own. */
static struct piece text_tail(const char *text, size_t len, size_t width)
{
    const char *open = len && text[len - 1] == '>' ? strrchr(text, '<') : NULL;

    if (open && (size_t)(text + len - open) <= width / 2)
        return (struct piece){(size_t)(open - text), len};
    return (struct piece){word_begin_before(text, len), len};
}

/* Chooses the parts to show of a text that is too long. Returns false if it has too few words. */
static bool choose_pieces(struct pieces *p, const char *text, size_t width,
                          const struct rp_kept_words *kept)
{
    struct rp_kept_words order = *kept;

    *p = (struct pieces){.text = text, .len = strlen(text), .n = 1};
    p->at[0] = text_head(text, width);

    /* The word that distinguishes the text from most others comes first. */
    for (size_t i = 1; i < order.n; i++)
        for (size_t j = i; j > 0 && order.at[j].count > order.at[j - 1].count; j--) {
            struct rp_kept_word swap = order.at[j];
            order.at[j] = order.at[j - 1];
            order.at[j - 1] = swap;
        }
    for (size_t i = 0; i < order.n; i++)
        pieces_add_word(p, (struct piece){order.at[i].begin, order.at[i].end}, width);
    pieces_add(p, text_tail(text, p->len, width), width);
    if (p->n == 1)
        return false;
    size_t used = pieces_width(p);
    pieces_grow_last(p, used + (width - used) / 2);
    pieces_grow_first(p, width);
    pieces_grow_last(p, width);
    pieces_add_word(p, (struct piece){p->at[0].end, next_word_end(text, p->at[0].end)}, width);
    return true;
}

size_t rp_screen_put_kept(struct rp_out *to, const char *text, size_t width,
                          const struct rp_kept_words *kept)
{
    struct pieces p;

    if (rp_screen_width(text) <= width || width < 8 || !choose_pieces(&p, text, width, kept))
        return rp_screen_put(to, text, width);
    return pieces_put(to, &p);
}

static const char *word_end(const char *text)
{
    while (*text && *text != ' ' && *text != '\n' && *text != '\t')
        text++;
    return text;
}

/* Whether a text begins with a unit of print_units.c: "ms", "GB/s,", "%)". */
static bool is_unit(const char *text)
{
    static const char *const units[] = {"ns", "µs", "ms", "s",  "B",    "kB",
                                        "MB", "GB", "TB", "PB", "FLOP", "%"};

    for (size_t i = 0; i < COUNT(units); i++) {
        size_t n = strlen(units[i]);

        if (!strncmp(text, units[i], n) && !in_word(text[n]))
            return true;
    }
    return false;
}

/* Returns the end of the part that stays on one line: a word, or a number and its unit. */
static const char *line_unit_end(const char *text)
{
    const char *end = word_end(text);

    if (end > text && *end == ' ' && end[-1] >= '0' && end[-1] <= '9' && is_unit(end + 1))
        return word_end(end + 1);
    return end;
}

static void put_word(struct rp_out *to, const char *text, const char *end)
{
    const char *bytes;
    size_t nbytes, width;

    while (text < end) {
        text += next_shown(text, &bytes, &nbytes, &width);
        rp_out_write(to, bytes, nbytes);
    }
}

static size_t word_width(const char *text, const char *end)
{
    const char *bytes;
    size_t nbytes, width, used = 0;

    while (text < end) {
        text += next_shown(text, &bytes, &nbytes, &width);
        used += width;
    }
    return used;
}

/* Writes a word; one that is wider than a line loses its middle. */
static size_t put_line_unit(struct rp_out *to, const char *text, const char *end, size_t room)
{
    size_t total = word_width(text, end), used, nbytes, width;
    const char *bytes;

    if (total <= room) {
        put_word(to, text, end);
        return total;
    }
    used = put_head(to, &text, room / 2);
    rp_out_text(to, "…");
    while (text < end && word_width(text, end) > room - used - 1)
        text += next_shown(text, &bytes, &nbytes, &width);
    put_word(to, text, end);
    return used + 1 + word_width(text, end);
}

static void wrap(struct rp_out *to, const char *text, size_t start, size_t indent, size_t width,
                 bool cuts)
{
    size_t column = start, room = cuts && width > indent ? width - indent : SIZE_MAX;

    for (bool first = true;; first = false) {
        text += strspn(text, " \n\t");
        if (!*text)
            return;
        const char *end = line_unit_end(text);
        size_t need = word_width(text, end);
        need = need < room ? need : room;
        if (!first && column + 1 + need > width) {
            rp_out_char(to, '\n');
            rp_screen_pad(to, indent);
            column = indent;
        } else if (!first) {
            rp_out_char(to, ' ');
            column++;
        }
        column += put_line_unit(to, text, end, room);
        text = end;
    }
}

void rp_screen_wrap(struct rp_out *to, const char *text, size_t start, size_t indent, size_t width)
{
    wrap(to, text, start, indent, width, false);
}

void rp_screen_wrap_within(struct rp_out *to, const char *text, size_t start, size_t indent,
                           size_t width)
{
    wrap(to, text, start, indent, width, true);
}
