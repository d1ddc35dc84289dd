/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up names in the user's rows and in categories.def. A name is compared with about 250
 * patterns, all but a few of which fail at their first letters.
 */
#include "cost/category.h"

#include "base/decides.h"
#include "base/limits.h"
#include "io/lines.h"

#include <string.h>

#define MOST_ROWS 4096
RP_LIMIT(MOST_ROWS, "patterns", "a file of categories with more is refused");
#define MOST_FILE (1 << 20)
RP_LIMIT(MOST_FILE, "bytes", "a larger file of categories is refused");
#define MOST_SHOWN 80
RP_LIMIT(MOST_SHOWN, "bytes", "of a line that a message shows");
#define MOST_NAME 256 /* the longest name of an operator that is looked up without its last '_' */

const char *const rp_category_names[RP_CATEGORIES] = {
#define CATEGORY_NAME(name, text, doc) [RP_CATEGORY_##name] = (text),
    RP_CATEGORY_MAP(CATEGORY_NAME)
#undef CATEGORY_NAME
};

static const struct rp_category_row op_rows[] = {
#define RP_CATEGORY_OP(category, pattern) {pattern, RP_CATEGORY_##category},
#include "cost/categories.def"
};

static const struct rp_category_row kernel_rows[] = {
#define RP_CATEGORY_KERNEL(category, pattern) {pattern, RP_CATEGORY_##category},
#include "cost/categories.def"
};

static const uint8_t of_class[RP_NAME_COUNT] = {[RP_NAME_NONE] = RP_CATEGORY_OTHER,
                                                [RP_NAME_COMM] = RP_CATEGORY_COMMUNICATION,
                                                [RP_NAME_MEMCPY] = RP_CATEGORY_COPY,
                                                [RP_NAME_MEMSET] = RP_CATEGORY_COPY,
                                                [RP_NAME_ATTENTION] = RP_CATEGORY_ATTENTION,
                                                [RP_NAME_CONV] = RP_CATEGORY_CONVOLUTION,
                                                [RP_NAME_GEMM] = RP_CATEGORY_MATMUL,
                                                [RP_NAME_SOFTMAX] = RP_CATEGORY_REDUCTION,
                                                [RP_NAME_NORM] = RP_CATEGORY_NORMALIZATION,
                                                [RP_NAME_OPTIMIZER] = RP_CATEGORY_OPTIMIZER,
                                                [RP_NAME_EMBEDDING] = RP_CATEGORY_EMBEDDING,
                                                [RP_NAME_SORT] = RP_CATEGORY_REDUCTION,
                                                [RP_NAME_RNG] = RP_CATEGORY_ELEMENTWISE,
                                                [RP_NAME_REDUCE] = RP_CATEGORY_REDUCTION,
                                                [RP_NAME_ELEMENTWISE] = RP_CATEGORY_ELEMENTWISE,
                                                [RP_NAME_LAYOUT] = RP_CATEGORY_LAYOUT};

bool rp_category_by_name(const char *name, size_t len, enum rp_category *out)
{
    for (int i = 0; i < RP_CATEGORIES; i++)
        if (strlen(rp_category_names[i]) == len && !memcmp(rp_category_names[i], name, len)) {
            *out = (enum rp_category)i;
            return true;
        }
    return false;
}

/* ------------------------------------------------------------------ matching */

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c | 32 : c);
}

bool rp_name_fits(const char *pattern, const char *name)
{
    const char *after_star = NULL, *retry = NULL; /* where to continue if the rest fails */

    for (;;) {
        if (*pattern == '*') {
            after_star = ++pattern;
            if (!*pattern)
                return true;
            retry = name;
        } else if (*name && lower(*pattern) == lower(*name)) {
            pattern++;
            name++;
            continue;
        } else if (!*pattern && !*name) {
            return true;
        } else if (after_star && *retry) {
            pattern = after_star;
            retry++;
        } else {
            return false;
        }
        while (*retry && lower(*retry) != lower(*pattern) && *pattern != '*')
            retry++;
        name = retry;
    }
}

static unsigned pair_hash(char a, char b)
{
    return ((unsigned)lower(a) << 5 ^ lower(b)) & 1023u;
}

void rp_name_pairs_init(struct rp_name_pairs *pairs, const char *name)
{
    *pairs = (struct rp_name_pairs){{0}};
    for (; *name && name[1]; name++) {
        unsigned h = pair_hash(name[0], name[1]);

        pairs->bits[h / 64] |= UINT64_C(1) << h % 64;
    }
}

/* Compares the last two letters of the pattern, which tell more than the "at" of "aten::". */
bool rp_name_pairs_may_fit(const struct rp_name_pairs *pairs, const char *pattern)
{
    size_t n = strlen(pattern);

    while (n && pattern[n - 1] == '*')
        n--;
    if (n < 2 || pattern[n - 2] == '*')
        return true;
    unsigned h = pair_hash(pattern[n - 2], pattern[n - 1]);
    return pairs->bits[h / 64] >> h % 64 & 1;
}

static bool find_row(const struct rp_category_row *rows, size_t n, const char *name,
                     enum rp_category *out)
{
    struct rp_name_pairs pairs;

    rp_name_pairs_init(&pairs, name);
    for (size_t i = 0; i < n; i++)
        if (rp_name_pairs_may_fit(&pairs, rows[i].pattern) && rp_name_fits(rows[i].pattern, name)) {
            *out = (enum rp_category)rows[i].category;
            return true;
        }
    return false;
}

static bool find_op(const char *op, enum rp_category *out)
{
    size_t n = strlen(op);
    char plain[MOST_NAME];

    if (n > 1 && n < sizeof plain &&
        op[n - 1] == '_') { /* an operator in place is the same operator */
        memcpy(plain, op, n - 1);
        plain[n - 1] = '\0';
        op = plain;
    }
    return find_row(op_rows, sizeof op_rows / sizeof op_rows[0], op, out);
}

enum rp_category rp_category_row_of(const char *name, bool is_op)
{
    enum rp_category found;

    if (is_op ? find_op(name, &found)
              : find_row(kernel_rows, sizeof kernel_rows / sizeof kernel_rows[0], name, &found))
        return found;
    return RP_CATEGORIES;
}

enum rp_name_class rp_name_class_of(const char *name)
{
    struct rp_name_matcher m;
    size_t n;
    const struct rp_name_pattern *patterns = rp_name_patterns(&n);

    rp_name_matcher_init(&m, patterns, n);
    return rp_name_classify(&m, name, strlen(name));
}

enum rp_category rp_category_of_class(enum rp_name_class name_class)
{
    return (enum rp_category)of_class[name_class];
}

bool rp_category_is_by_class(enum rp_name_class name_class)
{
    return name_class == RP_NAME_COMM || name_class == RP_NAME_MEMCPY ||
           name_class == RP_NAME_MEMSET || name_class == RP_NAME_LAYOUT;
}

bool rp_category_table_find(const struct rp_category_table *table, const char *op,
                            const char *kernel, enum rp_category *out)
{
    return table && table->rows.n &&
           ((op && find_row(table->rows.at, table->rows.n, op, out)) ||
            (kernel && find_row(table->rows.at, table->rows.n, kernel, out)));
}

enum rp_category rp_category_of(const struct rp_category_table *table, const char *op,
                                const char *kernel)
{
    enum rp_name_class class = kernel ? rp_name_class_of(kernel) : RP_NAME_NONE;
    enum rp_category found = RP_CATEGORIES;

    if (rp_category_table_find(table, op, kernel, &found))
        return found;
    if (rp_category_is_by_class(class))
        return rp_category_of_class(class);
    if (op)
        found = rp_category_row_of(op, true);
    if (found == RP_CATEGORIES && kernel)
        found = rp_category_row_of(kernel, false);
    if (found != RP_CATEGORIES)
        return found;
    return rp_category_of_class(class == RP_NAME_NONE && op ? rp_name_class_of(op) : class);
}

/* ------------------------------------------------------------------ the user's */

static enum rp_code parse_row(void *user, const char *path, size_t number, const char *line,
                              size_t n, struct rp_err *err)
{
    struct rp_category_table *table = user;
    struct rp_category_row row = {0};
    enum rp_category category;
    struct rp_line_row words;

    if (!rp_line_split(line, n, &words))
        return RP_OK;
    if (!rp_category_by_name(words.text, words.word, &category) || words.rest == words.n)
        return rp_err_set(err, RP_USAGE,
                          "'%s', line %zu: expected a category (matmul, attention, …, other) and "
                          "a pattern of names, not '%.*s'",
                          path, number, (int)(words.n < MOST_SHOWN ? words.n : MOST_SHOWN),
                          words.text);
    if (table->rows.n == MOST_ROWS)
        return rp_err_set(err, RP_USAGE, "'%s', line %zu: more than %d patterns", path, number,
                          MOST_ROWS);
    row.category = (uint8_t)category;
    row.pattern = rp_arena_copy(&table->arena, words.text + words.rest, words.n - words.rest);
    RP_TRY(rp_err_need(row.pattern, err, "reading patterns of categories"));
    return rp_vec_push(&table->rows, row, err);
}

enum rp_code rp_category_table_parse(struct rp_category_table *table, const char *path,
                                     const char *text, struct rp_err *err)
{
    return rp_lines_parse(path, text, parse_row, table, err);
}

enum rp_code rp_category_table_read(struct rp_category_table *table, const char *path,
                                    struct rp_err *err)
{
    return rp_lines_read(path, MOST_FILE, &table->arena, parse_row, table, err);
}

void rp_category_table_release(struct rp_category_table *table)
{
    rp_vec_release(&table->rows);
    rp_arena_release(&table->arena);
}
