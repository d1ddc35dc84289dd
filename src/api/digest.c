/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `digest` makes the parts of questions from the traces of a run, or of a shard of it, and writes
 * them into a file, which all these questions accept instead of the traces.
 */

#include "base/text.h"
#include "dataset/query.h"
#include "dataset/question.h"
#include "io/emit.h"
#include "result/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------ the result */

struct digest_root {
    const char *output, *id, *shard;
    int64_t ranks, output_bytes;
    size_t nquestions;
    const char **questions;
};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct digest_root, output, STR, NONE, "written", "the file", 0),
    RP_FIELD(struct digest_root, output_bytes, I64, BYTES, "size", "its size", 0),
    RP_FIELD(struct digest_root, ranks, I64, COUNT, "ranks", "ranks in it", 0),
    RP_FIELD(struct digest_root, shard, STR, NONE, "shard", "which of how many, or null", 0),
    RP_FIELD(struct digest_root, id, STR, NONE, "content", "SHA-256 of its content", RP_SHORTEN),
    RP_FIELD_LIST(struct digest_root, questions, &rp_type_string, NULL,
                  "questions that it answers, with their options", 0),
    RP_FIELD_END};
static const struct rp_type digest_type = {"digest", sizeof(struct digest_root), root_fields, NULL};

/* ------------------------------------------------------------------ what to ask */

#define WORDS_MOST 32

/* A question with its options, from a text such as "top --by op --step 3". */
struct wanted {
    struct rp_setting given[WORDS_MOST];
    struct rp_settings settings;
};

/* Whether the parts of a question can be sent: its ranks must be files of traces. */
static bool can_travel(const struct rp_question_row *row)
{
    return row->ranks.rank && !row->ranks.memory;
}

/* Parses "--by=op" or "--by op" at words[*i]. */
static enum rp_code parse_option(const struct rp_question_row *row, char **words, size_t n,
                                 size_t *i, struct rp_setting *out, struct rp_err *err)
{
    const struct rp_option *option = row->question.options;
    char *name = words[*i], *value = strchr(name, '=');

    if (strncmp(name, "--", 2) != 0)
        return rp_err_set(err, RP_USAGE, "'--for': '%s' is not an option of '%s'", name,
                          row->question.name);
    name += 2;
    if (value)
        *value++ = '\0';
    while (option->name && strcmp(option->name, name) != 0)
        option++;
    if (!option->name)
        return rp_err_set(err, RP_USAGE, "'--for': '%s' has no option '--%s'", row->question.name,
                          name);
    if (!value && option->type != RP_OPT_FLAG && *i + 1 < n)
        value = words[++*i];
    *out = (struct rp_setting){option->name, value};
    return RP_OK;
}

static enum rp_code parse_wanted(const char *text, struct rp_arena *arena, struct rp_asked *out,
                                 struct rp_err *err)
{
    struct wanted *w = RP_ARENA_NEW(arena, struct wanted, 1);
    char *copy = rp_arena_strdup(arena, text), *words[WORDS_MOST], *next = NULL;
    const struct rp_question_row *row = NULL;
    size_t n = 0, given = 0;

    RP_TRY(rp_err_need(w && copy, err, "making a digest"));
    for (char *word = strtok_r(copy, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
        if (n == WORDS_MOST)
            return rp_err_set(err, RP_USAGE, "'--for': more than %d words", WORDS_MOST);
        words[n++] = word;
    }
    if (n)
        row = (const struct rp_question_row *)(const void *)rp_question_find(words[0]);
    if (!row || !can_travel(row))
        return rp_err_set(err, RP_USAGE, "'--for %s': '%s' is not a question that takes digests",
                          text, n ? words[0] : "");
    for (size_t i = 1; i < n; i++)
        RP_TRY(parse_option(row, words, n, &i, &w->given[given++], err));
    RP_TRY(rp_settings_init(&w->settings, row->question.options, w->given, given, err));
    *out = (struct rp_asked){row->question.name, &row->ranks, &w->settings};
    return RP_OK;
}

/* Lists the questions of --for, or every question that can travel. */
static enum rp_code list_asked(const struct rp_settings *settings, struct rp_arena *arena,
                               struct digest_root *root, struct rp_asked **asked,
                               struct rp_err *err)
{
    size_t n, given = 0;

    const struct rp_question *const *list = rp_question_list(&n);

    while (rp_settings_nth(settings, "for", given))
        given++;
    *asked = RP_ARENA_NEW(arena, struct rp_asked, n + given);
    root->questions = RP_ARENA_NEW(arena, const char *, n + given);
    RP_TRY(rp_arena_check(arena, "making a digest", err));
    for (size_t i = 0; i < (given ? given : n); i++) {
        const char *text = given ? rp_settings_nth(settings, "for", i) : list[i]->name;

        if (!given && !can_travel((const struct rp_question_row *)(const void *)list[i]))
            continue;
        RP_TRY(parse_wanted(text, arena, &(*asked)[root->nquestions], err));
        root->questions[root->nquestions++] = rp_arena_text(arena, text);
    }
    return RP_OK;
}

/* Parses "2/8", the third shard of eight. */
static enum rp_code parse_shard(const char *text, struct rp_digesting *d, struct rp_err *err)
{
    char *slash, *end;

    if (!text)
        return RP_OK;
    errno = 0;
    unsigned long shard = strtoul(text, &slash, 10);
    unsigned long n = *slash == '/' ? strtoul(slash + 1, &end, 10) : 0;
    if (slash == text || *text == '-' || !n || *end || errno || shard >= n || n > 1000000)
        return rp_err_set(err, RP_USAGE,
                          "'--shard %s' is not a number from 0 and how many there are, such as "
                          "'0/8' to '7/8'",
                          text);
    d->shard = shard;
    d->nshards = n;
    return RP_OK;
}

/* ------------------------------------------------------------------ the question */

static enum rp_code write_digest(struct rp_digesting *d, const char *output, struct rp_err *err)
{
    struct rp_out *out = NULL;

    if (rp_text_ends(output, ".gz")) {
        /* The digest is first kept in memory: it is as large as the parts that were made for it. */
        struct rp_out *plain = NULL;
        struct rp_emit packed = {0};
        size_t n;

        RP_TRY(rp_emit_open(&packed, output, 0, err));
        enum rp_code code = rp_out_open_memory(&plain, err);
        if (code == RP_OK)
            code = rp_digest_make(d, plain, err);
        if (code == RP_OK)
            code = rp_out_flush(plain, err);
        if (code == RP_OK) {
            const char *bytes = rp_out_borrow_memory(plain, &n);
            rp_emit_bytes(&packed, bytes, n);
            code = rp_emit_close(&packed, err);
        }
        rp_emit_abandon(&packed);
        rp_out_abandon(plain);
        return code;
    }
    RP_TRY(rp_out_open(output, &out, err));
    return rp_out_end(out, rp_digest_make(d, out, err), err);
}

static enum rp_code digest_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    const char *output = rp_settings_text(settings, "output");
    struct digest_root *root = result->root;
    struct rp_digesting d = {.ctx = ctx, .dataset = dataset};
    struct rp_asked *asked;
    struct stat st;

    if (!output)
        return rp_err_set(err, RP_USAGE, "'digest' needs '--output FILE'");
    for (size_t i = 0; i < rp_dataset_count(dataset); i++)
        if (rp_is_same_file(rp_sources_borrow(dataset->sources, i)->path, output))
            return rp_err_set(err, RP_USAGE, "'%s' is both input and output", output);
    RP_TRY(parse_shard(rp_settings_text(settings, "shard"), &d, err));
    RP_TRY(list_asked(settings, &result->arena, root, &asked, err));
    d.asked = asked;
    d.nasked = root->nquestions;
    RP_TRY(write_digest(&d, output, err));
    root->output = rp_arena_text(&result->arena, output);
    root->id = rp_arena_text(&result->arena, d.id);
    root->shard = rp_arena_text(&result->arena, rp_settings_text(settings, "shard"));
    root->ranks = (int64_t)d.nranks;
    root->output_bytes =
        strcmp(output, "-") != 0 && !stat(output, &st) ? st.st_size : RP_ABSENT_I64;
    return rp_arena_check(&result->arena, "making a digest", err);
}

static const struct rp_option digest_options[] = {
    {"output", 'o', RP_OPT_PATH, "FILE", NULL,
     "file to write, usually *.rpd; compressed if its name ends in .gz", 0},
    {"shard", 0, RP_OPT_TEXT, "I/N", NULL,
     "read only part I, from 0, of N equal parts of the inputs, in the order of their names", 0},
    {"for", 0, RP_OPT_TEXT, "QUESTION", NULL,
     "what the digest can answer, such as 'top --by op' (default: every question, without options)",
     RP_OPT_REPEAT},
    RP_STEP_NAME_OPTION,
    RP_OPTION_END};

const struct rp_question_row rp_ask_digest = {
    .question =
        {.name = "digest",
         .group = "traces",
         .summary = "keep what questions need from each rank, in a small file",
         .details =
             "Questions about ranks take digests in place of the traces, or beside them, and give "
             "the same answer. Many processes or machines can each read a shard of a run "
             "(--shard), and one joins their digests. Digests of digests are their union. A digest "
             "holds no events: what needs them, such as 'convert' or '--overlay', needs the traces.",
         .examples = "reprise digest run/ -o run.rpd\teverything that questions need from a run\n"
                     "reprise digest run/ --shard 3/8 -o part3.rpd\tone of eight parts\n"
                     "reprise report part*.rpd\tthe report of the run\n"
                     "reprise digest run/ --for 'top --by op' -o ops.rpd\tfor one question\n",
         .accepts = RP_ACCEPTS_TRACES,
         .options = digest_options,
         .type = &digest_type},
    .run = digest_run};
