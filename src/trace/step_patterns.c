/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns are matched from left to right; if the text after a * does not fit, matching is tried
 * one character further on, so a match costs at most length x length.
 */
#include "trace/step_patterns.h"

#include "io/lines.h"
#include "trace/trace.h"

#include <ctype.h>
#include <string.h>

#define MOST_PATTERNS 1000
#define MOST_FILE     (1u << 20)
#define MOST_DIGITS   18

/* The marks of servers as they write them; more specific ones first. */
static const struct rp_step_pattern known[] = {
    /* vLLM, with and without the sums over the lengths of queries and keys */
    {"execute_{tokens}_context_{prefill_requests}(sq{prefill_tokens}sk{}*)_generation_"
     "{decode_requests}(sq{decode_tokens}sk{}*)",
     RP_PHASE_NONE, false},
    {"execute_{tokens}_context_{prefill_requests}({prefill_tokens})_generation_"
     "{decode_requests}({decode_tokens})*",
     RP_PHASE_NONE, false},
    {"execute_context_{prefill_requests}({prefill_tokens}*)_generation_"
     "{decode_requests}({decode_tokens}*)",
     RP_PHASE_NONE, false},
    {"execute_new_{requests}_cached_{requests}", RP_PHASE_NONE, false},
    /* SGLang */
    {"step[DECODE bs={requests,tokens}*]", RP_PHASE_DECODE, false},
    {"step[EXTEND bs={requests} toks={tokens}*]", RP_PHASE_PREFILL, false},
    {"step[EXTEND bs={requests}*]", RP_PHASE_PREFILL, false},
    {"step[PREFILL bs={requests} toks={tokens}*]", RP_PHASE_PREFILL, false},
    {"step[PREFILL bs={requests}*]", RP_PHASE_PREFILL, false},
    {"step[SPLIT_PREFILL bs={requests}*]", RP_PHASE_PREFILL, false},
    {"step[MIXED bs={requests} c={} g={} c_sq={tokens}* g_sq={tokens}*]", RP_PHASE_MIXED, false},
    {"step[MIXED bs={requests} ext={tokens} dec={tokens}*]", RP_PHASE_MIXED, false},
    {"step[MIXED bs={requests}*]", RP_PHASE_MIXED, false},
    {"step[TARGET_VERIFY bs={requests}*]", RP_PHASE_DECODE, false},
    {"step[IDLE*]", RP_PHASE_NONE, false},
    {"step[* bs={requests}*]", RP_PHASE_NONE, false},
    /* TensorRT-LLM */
    {"[Executor] _forward_step {step}: {prefill_requests} ctx reqs, {prefill_tokens} ctx tokens, "
     "{decode_requests} gen reqs*",
     RP_PHASE_NONE, false},
    {"[Executor] _forward_step {step}: {prefill_requests} ctx reqs, {decode_requests} gen reqs*",
     RP_PHASE_NONE, false},
    {"[Executor] _forward_step: {prefill_requests} ctx reqs, {decode_requests} gen reqs*",
     RP_PHASE_NONE, false},
    /* ATOM */
    {"prefill[bs={requests} tok={tokens}*]", RP_PHASE_PREFILL, false},
    {"decode[bs={requests} tok={tokens}*]", RP_PHASE_DECODE, false},
    /* diffusion: the steps of the loop, and xDiT's range around all of them */
    {"denoise_step_{step}", RP_PHASE_NONE, false},
    {"denoising_step_{step}", RP_PHASE_NONE, false},
    {"denoising step {step}", RP_PHASE_NONE, false},
    {"execute_diffusion_{requests}_{}x{}", RP_PHASE_NONE, true},
};

enum step_field {
    FIELD_STEP,
    FIELD_REQUESTS,
    FIELD_TOKENS,
    FIELD_PREFILL_REQUESTS,
    FIELD_PREFILL_TOKENS,
    FIELD_DECODE_REQUESTS,
    FIELD_DECODE_TOKENS,
    FIELDS
};

static const char *const field_names[FIELDS] = {
    "step",           "requests",        "tokens",       "prefill_requests",
    "prefill_tokens", "decode_requests", "decode_tokens"};

struct step_values {
    int64_t of[FIELDS]; /* RP_NO_COUNT: not given */
};

/* The field of that name, or FIELDS. */
static size_t find_field(const char *name, size_t n)
{
    size_t i;

    for (i = 0; i < FIELDS && (strlen(field_names[i]) != n || memcmp(field_names[i], name, n) != 0);
         i++)
        ;
    return i;
}

/* Sets the fields between { and }; returns where the pattern continues, or NULL if it is wrong. */
static const char *set_fields(const char *at, int64_t number, struct step_values *values)
{
    while (*at != '}') {
        size_t n = strcspn(at, ",}"), field = find_field(at, n);

        if (!at[n] || field == FIELDS)
            return NULL;
        if (values->of[field] == RP_NO_COUNT)
            values->of[field] = 0;
        if (__builtin_add_overflow(values->of[field], number, &values->of[field]))
            values->of[field] = INT64_MAX;
        at += n + (at[n] == ',');
    }
    return at + 1;
}

/* A number at *text; false: there is none, or it is too long. */
static bool take_number(const char **text, int64_t *number)
{
    const char *at = *text;

    for (*number = 0; isdigit((unsigned char)*at) && at - *text < MOST_DIGITS; at++)
        *number = *number * 10 + (*at - '0');
    if (at == *text || isdigit((unsigned char)*at))
        return false;
    *text = at;
    return true;
}

/* Matches one element of the pattern that is not a *. */
static bool take_element(const char **pattern, const char **text, struct step_values *values)
{
    const char *p = *pattern;
    int64_t number;

    if (*p == '{') {
        if (!take_number(text, &number))
            return false;
        *pattern = set_fields(p + 1, number, values);
        return *pattern != NULL;
    }
    p += *p == '\\' && p[1];
    if (!**text || tolower((unsigned char)*p) != tolower((unsigned char)**text))
        return false;
    *pattern = p + 1;
    (*text)++;
    return true;
}

static bool match_text(const char *pattern, const char *text, struct step_values *values)
{
    const char *after_star = NULL, *retry = NULL; /* where to go on if what follows fails */
    struct step_values at_star;

    for (;;) {
        if (*pattern == '*') {
            after_star = ++pattern;
            retry = text;
            at_star = *values;
            continue;
        }
        if (!*pattern && !*text)
            return true;
        if (*pattern && take_element(&pattern, &text, values))
            continue;
        if (!after_star || !*retry)
            return false;
        pattern = after_star;
        text = ++retry;
        *values = at_star;
    }
}

/* Adds two numbers, one of which may be missing if the other one shows that it is 0. */
static int64_t add_parts(const struct step_values *v, int prefill, int decode)
{
    bool no_prefill = v->of[FIELD_PREFILL_REQUESTS] == 0, no_decode = !v->of[FIELD_DECODE_REQUESTS];
    int64_t a = v->of[prefill] == RP_NO_COUNT && no_prefill ? 0 : v->of[prefill];
    int64_t b = v->of[decode] == RP_NO_COUNT && no_decode ? 0 : v->of[decode], sum;

    if (a == RP_NO_COUNT || b == RP_NO_COUNT)
        return RP_NO_COUNT;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The phase that the numbers say. */
static uint8_t phase_of(const struct step_values *v)
{
    int64_t prefill = v->of[FIELD_PREFILL_REQUESTS], decode = v->of[FIELD_DECODE_REQUESTS];

    prefill = prefill == RP_NO_COUNT ? v->of[FIELD_PREFILL_TOKENS] : prefill;
    decode = decode == RP_NO_COUNT ? v->of[FIELD_DECODE_TOKENS] : decode;
    if (prefill > 0 && decode > 0)
        return RP_PHASE_MIXED;
    return prefill > 0 ? RP_PHASE_PREFILL : decode > 0 ? RP_PHASE_DECODE : RP_PHASE_NONE;
}

static bool match_pattern(const struct rp_step_pattern *p, const char *name,
                          struct rp_step_mark *out)
{
    struct step_values v;

    for (size_t i = 0; i < FIELDS; i++)
        v.of[i] = RP_NO_COUNT;
    if (!match_text(p->text, name, &v))
        return false;
    out->number = v.of[FIELD_STEP];
    out->requests = v.of[FIELD_REQUESTS];
    if (out->requests == RP_NO_COUNT)
        out->requests = add_parts(&v, FIELD_PREFILL_REQUESTS, FIELD_DECODE_REQUESTS);
    out->tokens = v.of[FIELD_TOKENS];
    if (out->tokens == RP_NO_COUNT)
        out->tokens = add_parts(&v, FIELD_PREFILL_TOKENS, FIELD_DECODE_TOKENS);
    out->phase = p->phase == RP_PHASE_NONE ? phase_of(&v) : p->phase;
    out->outer = p->outer;
    out->users = false;
    return true;
}

bool rp_step_table_match(const struct rp_step_table *table, const char *name,
                         struct rp_step_mark *out)
{
    for (size_t i = 0; table && i < table->patterns.n; i++)
        if (match_pattern(&table->patterns.at[i], name, out)) {
            out->users = true;
            return true;
        }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (match_pattern(&known[i], name, out))
            return true;
    return false;
}

/* ------------------------------------------------------------------ the user's */

/* Says what is wrong with a pattern; NULL if nothing. */
static const char *pattern_fault(const char *at)
{
    struct step_values scratch = {{0}};
    bool literal = false;

    while (*at) {
        if (*at == '}')
            return "has a '}' without '{'";
        if (*at == '{') {
            at = set_fields(at + 1, 0, &scratch);
            if (!at)
                return "has a field that is none of step, requests, tokens, prefill_requests, "
                       "prefill_tokens, decode_requests, decode_tokens, or a '{' without '}'";
            continue;
        }
        literal = literal || *at != '*';
        at += *at == '\\' && at[1] ? 2 : 1;
    }
    return literal ? NULL : "matches every name";
}

static bool read_phase(const char *word, size_t n, struct rp_step_pattern *out)
{
    static const struct {
        const char *word;
        uint8_t phase;
        bool outer;
    } words[] = {{"prefill", RP_PHASE_PREFILL, false},
                 {"decode", RP_PHASE_DECODE, false},
                 {"mixed", RP_PHASE_MIXED, false},
                 {"-", RP_PHASE_NONE, false},
                 {"outer", RP_PHASE_NONE, true}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == n && !memcmp(words[i].word, word, n)) {
            out->phase = words[i].phase;
            out->outer = words[i].outer;
            return true;
        }
    return false;
}

static enum rp_code parse_line(void *user, const char *path, size_t number, const char *line,
                               size_t n, struct rp_err *err)
{
    struct rp_step_table *table = user;
    struct rp_step_pattern pattern = {0};
    struct rp_line_row words;

    if (!rp_line_split(line, n, &words))
        return RP_OK;
    if (!read_phase(words.text, words.word, &pattern) || words.rest == words.n)
        return rp_err_set(err, RP_USAGE,
                          "'%s', line %zu: expected prefill, decode, mixed, - or outer, and a "
                          "pattern, not '%.*s'",
                          path, number, words.n < 80 ? (int)words.n : 80, words.text);
    pattern.text = rp_arena_copy(&table->arena, words.text + words.rest, words.n - words.rest);
    RP_TRY(rp_err_need(pattern.text, err, "reading patterns of steps"));
    const char *fault = pattern_fault(pattern.text);
    if (!fault && table->patterns.n == MOST_PATTERNS)
        fault = "is one too many";
    if (fault)
        return rp_err_set(err, RP_USAGE, "'%s', line %zu: '%.80s' %s", path, number, pattern.text,
                          fault);
    return rp_vec_push(&table->patterns, pattern, err);
}

enum rp_code rp_step_table_parse(struct rp_step_table *table, const char *path, const char *text,
                                 struct rp_err *err)
{
    return rp_lines_parse(path, text, parse_line, table, err);
}

enum rp_code rp_step_table_read(struct rp_step_table *table, const char *path, struct rp_err *err)
{
    return rp_lines_read(path, MOST_FILE, &table->arena, parse_line, table, err);
}

void rp_step_table_release(struct rp_step_table *table)
{
    rp_vec_release(&table->patterns);
    rp_arena_release(&table->arena);
}
