/* SPDX-License-Identifier: Apache-2.0 */
/* `graph`: look at a program: its summary, parts of it, or all of it as a page or for Graphviz. */
#include "dataset/question.h"
#include "draw/program_page.h"
#include "explain/graph/aliases.h"
#include "explain/graph/folder.h"
#include "explain/graph/graph.h"
#include "explain/graph/list.h"
#include "formats/lazy/alias_dump.h"

struct graph_run {
    const struct rp_settings *settings;
    struct rp_result *result;
};

static enum rp_code list(const struct graph_run *run, const struct rp_program *p,
                         struct rp_listing *listing, struct rp_err *err)
{
    struct rp_arena *arena = &run->result->arena;
    const char *near = rp_settings_text(run->settings, "near");
    const char *path = rp_settings_text(run->settings, "path");
    const char *grep = rp_settings_text(run->settings, "grep");
    int64_t hops = rp_settings_int(run->settings, "hops");

    if (rp_settings_flag(run->settings, "tree"))
        RP_TRY(rp_list_tree(p, arena, listing, err));
    if (near)
        RP_TRY(rp_list_near(p, near, (unsigned)hops, arena, listing, err));
    if (path)
        RP_TRY(rp_list_path(p, path, arena, listing, err));
    return grep ? rp_list_grep(p, grep, arena, listing, err) : RP_OK;
}

/* Graphviz gets what was listed, where something was. */
static enum rp_code draw(const struct rp_program *p, const bool *wanted, const char *path,
                         bool html, struct rp_err *err)
{
    struct rp_out *to;
    enum rp_code code;

    RP_TRY(rp_out_open(path, &to, err));
    code = html ? rp_draw_program_html(p, to, err) : rp_draw_program_dot(p, wanted, to);
    if (code == RP_OK)
        return rp_out_close(to, err);
    rp_out_abandon(to);
    return code;
}

/* What the module says of them, or the file that the user gives. */
static enum rp_code aliases(const struct graph_run *run, const struct rp_program *p,
                            struct rp_err *err)
{
    struct rp_arena *arena = &run->result->arena;
    const char *path = rp_settings_text(run->settings, "aliases");
    struct rp_alias_pair *pairs = NULL;
    uint32_t(*numbers)[2];
    struct rp_input *in;
    enum rp_code code;
    size_t n = 0;

    if (!path)
        return rp_graph_list_aliases(p, NULL, 0, arena, run->result->root, err);
    RP_TRY(rp_input_open(path, NULL, &in, err));
    code = rp_alias_dump_read(in, NULL, arena, &pairs, &n, err);
    rp_input_close(in);
    if (code != RP_OK)
        return rp_err_context(err, code, "reading '%s'", path);
    numbers = rp_arena_alloc(arena, (n + 1) * sizeof *numbers, _Alignof(uint32_t));
    if (!numbers)
        return rp_err_nomem(err, "reading aliases");
    for (size_t i = 0; i < n; i++) {
        numbers[i][0] = pairs[i].parameter;
        numbers[i][1] = pairs[i].output;
    }
    return rp_graph_list_aliases(p, (const uint32_t(*)[2])numbers, n, arena, run->result->root,
                                 err);
}

static enum rp_code program(void *user, const struct rp_loaded_program *loaded, struct rp_err *err)
{
    const struct graph_run *run = user;
    struct rp_graph *root = run->result->root;
    const char *html = rp_settings_text(run->settings, "html");
    const char *dot = rp_settings_text(run->settings, "dot");
    struct rp_listing listing = {0};

    RP_TRY(rp_explain_graph(loaded->program, loaded->format, &run->result->arena, root, err));
    RP_TRY(aliases(run, loaded->program, err));
    RP_TRY(list(run, loaded->program, &listing, err));
    root->listing = listing.lines;
    root->nlisting = listing.n;
    if (rp_settings_has(run->settings, "grep") && !listing.n)
        run->result->answer = RP_ANSWER_NO;
    if (listing.n || run->result->answer)
        run->result->type = rp_graph_listing_type(&run->result->arena);
    if (!run->result->type)
        return rp_err_nomem(err, "listing operations");
    if (html)
        RP_TRY(draw(loaded->program, NULL, html, true, err));
    return dot ? draw(loaded->program, listing.ops, dot, false, err) : RP_OK;
}

/* What is shown of one program only. */
static const char *const parts[] = {"aliases", "html", "dot", "tree", "near", "path", "grep"};

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    struct graph_run graph = {.settings = settings, .result = result};
    struct rp_graph_folder folder;
    const char *module = rp_settings_text(settings, "module");
    const char *stage = rp_settings_text(settings, "stage");

    if (rp_dataset_count(dataset) == 1 && !module && !stage)
        return rp_each_program(ctx, dataset, program, &graph, err);
    RP_TRY(rp_graph_folder_open(dataset, module, stage, &result->arena, &folder, err));
    if (folder.n == 1)
        return rp_each_program_of(ctx, dataset, folder.sources, 1, program, &graph, err);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (rp_settings_has(settings, parts[i]))
            return rp_err_set(err, RP_USAGE,
                              "'--%s' shows one program, not %zu; choose one of a dump folder "
                              "with --module and --stage",
                              parts[i], folder.n);
    return rp_graph_folder_list(ctx, dataset, &folder, result, err);
}

static const struct rp_option options[] = {
    {"tree", 0, RP_OPT_FLAG, NULL, NULL, "the computations that call each other", 0},
    {"near", 0, RP_OPT_TEXT, "OP", NULL, "an operation, what it reads and who reads it", 0},
    {"hops", 0, RP_OPT_INT, "0..1000", "1", "with --near: how many steps away", 0},
    {"path", 0, RP_OPT_TEXT, "A,B", NULL, "the shortest way of data from A to B", 0},
    {"grep", 0, RP_OPT_TEXT, "WORDS", NULL,
     "operations by op, name, shape, line, scope, in: 'op=dot shape~bf16'", 0},
    {"aliases", 0, RP_OPT_PATH, "FILE", NULL,
     "inputs and outputs that share memory, as Ratex dumps them", 0},
    {"module", 0, RP_OPT_TEXT, "NAME", NULL,
     "of a dump folder: the module of that number, name or part of a name", 0},
    {"stage", 0, RP_OPT_TEXT, "STAGE", NULL,
     "... at source, before, after, run, a pass's number or a part of its name", 0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL, "also write a page for the browser", 0},
    {"dot", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a graph for Graphviz: of all, or of what is listed", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_graph = {
    .question = {.name = "graph",
                 .group = "programs",
                 .summary = "what a program consists of and what it costs",
                 .details =
                     "HLO as text or protobuf, TensorFlow graphs, StableHLO, lazy-tensor dumps; "
                     "also compressed. Names do not count for the "
                     "hash: two files of the same program have the same one. The page that "
                     "--html writes needs no network.",
                 .examples = "reprise graph module.txt\tsummary and opcodes\n"
                             "reprise graph module.hlo.pb --grep 'op=dot line=model.py:12'\t"
                             "what a line of code became\n"
                             "reprise graph module.txt --near dot.7 --hops 2\taround an operation\n"
                             "reprise graph module.txt --html page.html\tfor the browser\n"
                             "reprise graph dump/\tthe modules of a folder and their stages\n"
                             "reprise graph dump/ --module jit_step --stage after\tone of them\n",
                 .accepts = RP_ACCEPTS_PROGRAMS,
                 .options = options,
                 .type = &rp_graph_type},
    .run = run};
