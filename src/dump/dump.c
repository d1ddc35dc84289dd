/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump`: what compilers and frameworks write about the programs they make. The words are rows of a
 * table (words.h), each with an answer of its own type.
 */
#include "dataset/question.h"
#include "dump/words.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const struct rp_dump_word *const words[] = {
#define WORD_ADDRESS(word) &rp_dump_##word,
    RP_DUMP_WORDS(WORD_ADDRESS)
#undef WORD_ADDRESS
};

#define NWORDS (sizeof words / sizeof words[0])

/* ---- without a word: what there is ---- */

struct dump_row {
    const char *word, *summary;
};

struct dump_root {
    size_t nwords;
    struct dump_row *words;
};

static const struct rp_field row_fields[] = {
    RP_FIELD(struct dump_row, word, STR, NONE, "word", "word of the command line", 0),
    RP_FIELD(struct dump_row, summary, STR, NONE, "answers", "what it shows or does", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"word", sizeof(struct dump_row), row_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD_LIST(struct dump_root, words, &row_type, "dump WORD", "what 'dump' can be asked", 0),
    RP_FIELD_END};
static const struct rp_type root_type = {"dump", sizeof(struct dump_root), root_fields, "words"};

/* ---- with one ---- */

static const struct rp_dump_word *find_word(const char *name)
{
    for (size_t i = 0; i < NWORDS; i++)
        if (!strcmp(words[i]->name, name))
            return words[i];
    return NULL;
}

/* Whether a list of names with blanks between contains one. */
static bool has_name(const char *list, const char *name)
{
    size_t n = strlen(name);

    while (list && *list) {
        size_t len = strcspn(list, " ");

        if (len == n && !memcmp(list, name, n))
            return true;
        list += len + (list[len] == ' ');
    }
    return false;
}

/* Divides the words of the command line into files and, if the word takes one, the subject, the
   only one that is not a file. */
static enum rp_code divide_sources(const struct rp_dump_word *word, struct rp_dump_call *call,
                                   const char **paths, size_t *npaths, struct rp_err *err)
{
    const char *source;

    *npaths = 0;
    for (size_t i = 0; !word->any && (source = rp_settings_nth(call->settings, "source", i)); i++) {
        bool file = word->files && (!strcmp(source, "-") || !access(source, F_OK));

        if (!file && word->subject && !call->subject)
            call->subject = source;
        else if (word->files)
            paths[(*npaths)++] = source;
        else
            return rp_err_set(err, RP_USAGE, "'dump %s' takes %s%s, not '%s' too", word->name,
                              word->subject ? "one " : "no file",
                              word->subject ? word->subject : "", source);
    }
    if (word->files && !*npaths && !(word->alone && rp_settings_has(call->settings, word->alone)))
        return rp_err_set(err, RP_USAGE, "'dump %s' needs a folder of dumps or a file", word->name);
    return RP_OK;
}

static enum rp_code answer_word(struct rp_ctx *ctx, const struct rp_dump_word *word,
                                const struct rp_settings *settings, struct rp_result *result,
                                struct rp_err *err)
{
    struct rp_dump_call call = {.ctx = ctx, .settings = settings};
    const char **paths = RP_ARENA_NEW(&result->arena, const char *, settings->ngiven + 1);
    struct rp_dataset *dataset = NULL;
    size_t npaths;

    result->type = word->type;
    result->root = rp_arena_calloc(&result->arena, 1, word->type->size, _Alignof(max_align_t));
    RP_TRY(rp_err_need(paths && result->root, err, "answering"));
    /* An option of another word is an error, because it would change nothing. */
    for (size_t i = 0; i < settings->ngiven; i++) {
        const char *name = settings->given[i].name;

        if (strcmp(name, "action") != 0 && strcmp(name, "source") != 0 &&
            !has_name(word->options, name))
            return rp_err_set(err, RP_USAGE, "'dump %s' takes no option '--%s'", word->name, name);
    }

    RP_TRY(divide_sources(word, &call, paths, &npaths, err));
    enum rp_code code = npaths ? rp_open(ctx, paths, npaths, NULL, &dataset, err) : RP_OK;
    call.dataset = dataset;
    if (code == RP_OK)
        code = word->run(&call, result, err);
    rp_dataset_free(dataset);
    return code;
}

static enum rp_code dump_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                             const struct rp_settings *settings, struct rp_result *result,
                             struct rp_err *err)
{
    const char *action = rp_settings_text(settings, "action");

    (void)dataset;
    if (!action && !rp_settings_has(settings, "source")) {
        struct dump_root *root = result->root;

        root->words = RP_ARENA_NEW(&result->arena, struct dump_row, NWORDS);
        for (size_t i = 0; root->words && i < NWORDS; i++)
            root->words[root->nwords++] = (struct dump_row){words[i]->name, words[i]->summary};
        return rp_arena_check(&result->arena, "listing words", err);
    }
    const struct rp_dump_word *word = find_word(action ? action : "ls");
    if (!word)
        return rp_err_set(err, RP_USAGE, "'dump' needs a word: 'reprise dump' lists them");
    return answer_word(ctx, word, settings, result, err);
}

/* ---- the row ---- */

static const struct rp_option options[] = {
    {"action", 0, RP_OPT_CHOICE, RP_DUMP_WORD_LIST, NULL,
     "what to show or do (ls, where only files are given)", RP_OPT_WORDS},
    {"source", 0, RP_OPT_TEXT, "SOURCE", NULL, "file, folder or name",
     RP_OPT_REPEAT | RP_OPT_WORDS},
    {"into", 0, RP_OPT_PATH, "DIR", "dump", "with 'run': folder of the dumps", RP_OPT_WORDS},
    {"module", 'm', RP_OPT_TEXT, "NAME", NULL,
     "only modules with this number, name or part of a name; with 'run' a regular expression", 0},
    {"pass", 0, RP_OPT_TEXT, "NAME", NULL,
     "passes: show the changes of passes with this number or part of a name; with 'run': dump "
     "around the passes that match this regular expression",
     0},
    {"bisect", 0, RP_OPT_FLAG, NULL, NULL,
     "with 'passes': run the programs between passes, and name the pass that breaks the module", 0},
    {"inputs", 'i', RP_OPT_PATH, "FILE", NULL,
     "with --bisect: arrays in0, in1 ... in an .npz, or one .npy (default: synthetic)", 0},
    {"seed", 0, RP_OPT_INT, "N", "0", "with --bisect: seed of synthetic inputs", 0},
    {"framework", 0, RP_OPT_TEXT, "LIST", NULL,
     "with 'run' and 'flags': only of these frameworks, separated by commas: xla, jax, tensorflow, pytorch, "
     "torch_xla, ratex, bladedisc",
     0},
    {"every", 0, RP_OPT_FLAG, NULL, NULL,
     "with 'flags': also flags that have nothing to do with dumps", 0},
    {"preset", 0, RP_OPT_CHOICE, "quick|passes|fusion|memory|replay", "quick",
     "with 'run': what to write down", 0},
    {"log-level", 0, RP_OPT_INT, "0..9", NULL,
     "with 'run': verbose messages of TensorFlow and XLA up to this level", 0},
    {"max-bytes", 0, RP_OPT_BYTES, "SIZE", "4GiB",
     "with 'run': remove the oldest dumps when the folder grows beyond this", 0},
    {"keep-flags", 0, RP_OPT_FLAG, NULL, NULL,
     "with 'run': pass on flags that this XLA does not know", 0},
    {"dry-run", 0, RP_OPT_FLAG, NULL, NULL, "with 'run': show what would be set, and run nothing",
     0},
    {"target", 0, RP_OPT_CHOICE, "ref|fast|pjrt|tf2xla", "fast",
     "with 'ops': the engine or the conversion of TensorFlow graphs to ask about", 0},
    {"at", 0, RP_OPT_TEXT, "N|NAME", NULL,
     "with 'memory': show what is live at this position or instruction instead of at the peak", 0},
    {"trace", 't', RP_OPT_PATH, "FILE", NULL,
     "with 'kernels': a trace of the same program, for the time of each kernel", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_dump = {
    .question = {.name = "dump",
                 .group = "programs",
                 .summary = "what the compiler did: capture and read its dumps",
                 .details =
                     "Runs a program so that its framework writes down what it compiles, and "
                     "reads such folders: XLA's dumps, TensorFlow's graphs, lazy-tensor "
                     "graphs, logs of torch.compile. Without a word, lists the words.",
                 .examples = "reprise dump run -- python train.py\tcapture dumps in ./dump\n"
                             "reprise dump run --preset passes -o d -- python train.py\twhat each "
                             "pass changed\n"
                             "reprise dump passes d --bisect\twhich pass broke the module\n"
                             "reprise dump ls d\tthe modules of a folder\n"
                             "reprise dump breaks d\twhere torch.compile ended a graph\n"
                             "reprise dump flags xla_dump_to\twhat a flag does\n",
                 .accepts = RP_ACCEPTS_SOURCES,
                 .options = options,
                 .type = &root_type},
    .run = dump_run};
