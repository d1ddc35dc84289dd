/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `graph`: the summary of a program, parts of it, or all of it as a page or for Graphviz; of a
 * folder of compiler dumps the modules and their stages.
 */
#include "explain/graph/graph.h"

#include "dataset/question.h"
#include "formats/lazy/alias_dump.h"
#include "formats/torch_trace/torch_trace.h"

#include <string.h>

/* ---- the record ---- */

static const struct rp_field opcode_fields[] = {
    RP_FIELD(struct rp_graph_opcode, name, STR, NONE, "opcode", "name of the operation",
             RP_SHORTEN),
    RP_FIELD(struct rp_graph_opcode, count, I64, COUNT, "count", "how often it occurs", 0),
    RP_FIELD_END};
static const struct rp_type opcode_type = {"opcode", sizeof(struct rp_graph_opcode), opcode_fields,
                                           NULL};

static const struct rp_field cluster_fields[] = {
    RP_FIELD(struct rp_graph_opcode, name, STR, NONE, "cluster", "name", 0),
    RP_FIELD(struct rp_graph_opcode, count, I64, COUNT, "nodes", "number of nodes", 0),
    RP_FIELD_END};
static const struct rp_type cluster_type = {"cluster", sizeof(struct rp_graph_opcode),
                                            cluster_fields, NULL};

static const struct rp_field line_fields[] = {
    RP_FIELD(struct rp_graph_line, place, STR, NONE, "source line", "file, line and function",
             RP_SHORTEN),
    RP_FIELD(struct rp_graph_line, instructions, I64, COUNT, "instructions",
             "instructions that come from this line", 0),
    RP_FIELD(struct rp_graph_line, flops, I64, FLOP, "flops", "FLOPs of these instructions",
             RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type line_type = {"line", sizeof(struct rp_graph_line), line_fields, NULL};

static const struct rp_field comm_fields[] = {
    RP_FIELD(struct rp_comm_sum, collective, STR, NONE, "collective", "opcode", 0),
    RP_FIELD(struct rp_comm_sum, axis, STR, NONE, "axis", "devices that work together", RP_SHORTEN),
    RP_FIELD(struct rp_comm_sum, instructions, I64, COUNT, "instructions",
             "instructions of the program", 0),
    RP_FIELD(struct rp_comm_sum, runs, F64, COUNT, "runs", "runs in one execution", 0),
    RP_FIELD(struct rp_comm_sum, payload_bytes, F64, BYTES, "payload",
             "payload of a device in all runs", 0),
    RP_FIELD(struct rp_comm_sum, wire_bytes, F64, BYTES, "sent",
             "bytes that a device sends, with ring algorithms", 0),
    RP_FIELD_END};
static const struct rp_type comm_type = {"collective", sizeof(struct rp_comm_sum), comm_fields,
                                         NULL};

static const struct rp_field comm_line_fields[] = {
    RP_FIELD(struct rp_comm_sum, line, STR, NONE, "source line", "file, line and function",
             RP_SHORTEN),
    RP_FIELD(struct rp_comm_sum, collective, STR, NONE, "collective", "opcode", 0),
    RP_FIELD(struct rp_comm_sum, axis, STR, NONE, "axis", "devices that work together", RP_SHORTEN),
    RP_FIELD(struct rp_comm_sum, runs, F64, COUNT, "runs", "runs in one execution", 0),
    RP_FIELD(struct rp_comm_sum, payload_bytes, F64, BYTES, "payload",
             "payload of a device in all runs", RP_WIDE),
    RP_FIELD(struct rp_comm_sum, wire_bytes, F64, BYTES, "sent",
             "bytes that a device sends, with ring algorithms", 0),
    RP_FIELD_END};
static const struct rp_type comm_line_type = {"line", sizeof(struct rp_comm_sum), comm_line_fields,
                                              NULL};

static const struct rp_field program_fields[] = {
    RP_FIELD(struct rp_graph_program, module, I64, NONE, "module", "number in a dump folder",
             RP_NULLABLE),
    RP_FIELD(struct rp_graph_program, stage, STR, NONE, "stage", "stage of the compilation",
             RP_SHORTEN),
    RP_FIELD(struct rp_graph_program, file, STR, NONE, "file", "path", RP_SHORTEN),
    RP_FIELD(struct rp_graph_program, format, STR, NONE, "format", "format of the file", RP_WIDE),
    RP_FIELD(struct rp_graph_program, name, STR, NONE, "name", "name of the program", RP_SHORTEN),
    RP_FIELD(struct rp_graph_program, hash, STR, NONE, "hash",
             "the same for every file of the same program", 0),
    RP_FIELD(struct rp_graph_program, instructions, I64, COUNT, "instructions",
             "instructions in all computations", 0),
    RP_FIELD(struct rp_graph_program, flops, I64, FLOP, "flops", "FLOPs of one execution",
             RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type program_type = {"program", sizeof(struct rp_graph_program),
                                            program_fields, NULL};

static const struct rp_field module_fields[] = {
    RP_FIELD(struct rp_graph_module, id, I64, NONE, "module", "number", RP_NULLABLE),
    RP_FIELD(struct rp_graph_module, name, STR, NONE, "name", "name of the module", RP_SHORTEN),
    RP_FIELD(struct rp_graph_module, folder, STR, NONE, "folder", "folder of its files",
             RP_SHORTEN | RP_WIDE),
    RP_FIELD(struct rp_graph_module, files, I64, COUNT, "files", "files of the module", 0),
    RP_FIELD(struct rp_graph_module, stages, I64, COUNT, "stages",
             "programs of the module, without passes and executions", 0),
    RP_FIELD(struct rp_graph_module, passes, I64, COUNT, "passes", "programs dumped between passes",
             0),
    RP_FIELD(struct rp_graph_module, executions, I64, COUNT, "runs",
             "executions recorded with arguments", 0),
    RP_FIELD(struct rp_graph_module, instructions_before, I64, COUNT, "before",
             "instructions before optimisation", RP_NULLABLE),
    RP_FIELD(struct rp_graph_module, instructions_after, I64, COUNT, "after",
             "instructions after optimisation", RP_NULLABLE),
    RP_FIELD(struct rp_graph_module, flops, I64, FLOP, "flops", "FLOPs of one execution",
             RP_NULLABLE),
    RP_FIELD(struct rp_graph_module, hash, STR, NONE, "hash",
             "hash of the last stage before execution", 0),
    RP_FIELD_LIST(struct rp_graph_module, kinds, &rp_type_string, NULL, "kinds of its files", 0),
    RP_FIELD_END};
static const struct rp_type module_type = {"module", sizeof(struct rp_graph_module), module_fields,
                                           NULL};

static const struct rp_field alias_fields[] = {
    RP_FIELD(struct rp_graph_alias, parameter, I64, NONE, "parameter", "number of the input", 0),
    RP_FIELD(struct rp_graph_alias, output, I64, NONE, "output",
             "number of the output that reuses its memory", 0),
    RP_FIELD(struct rp_graph_alias, name, STR, NONE, "name", "name of the input", RP_SHORTEN),
    RP_FIELD(struct rp_graph_alias, shape, STR, NONE, "shape", "shape of the input", 0),
    RP_FIELD(struct rp_graph_alias, size_bytes, I64, BYTES, "size", "size of the input", 0),
    RP_FIELD(struct rp_graph_alias, kind, STR, NONE, "kind", "may or must", 0),
    RP_FIELD_END};
static const struct rp_type alias_type = {"alias", sizeof(struct rp_graph_alias), alias_fields,
                                          NULL};

static const struct rp_field graph_fields[] = {
    RP_FIELD(struct rp_graph_answer, format, STR, NONE, "format", "format of the file", 0),
    RP_FIELD(struct rp_graph_answer, name, STR, NONE, "name", "name of the program", RP_SHORTEN),
    RP_FIELD(struct rp_graph_answer, hash, STR, NONE, "hash",
             "the same for every file of the same program", 0),
    RP_FIELD(struct rp_graph_answer, computations, I64, COUNT, "computations", "or functions",
             RP_NULLABLE),
    RP_FIELD(struct rp_graph_answer, instructions, I64, COUNT, "instructions",
             "instructions in all computations", 0),
    RP_FIELD(struct rp_graph_answer, parameters, I64, COUNT, "parameters",
             "parameters of the entry computation", RP_NULLABLE),
    RP_FIELD(struct rp_graph_answer, parameter_bytes, I64, BYTES, "parameter size",
             "size of all parameters", RP_NULLABLE),
    RP_FIELD(struct rp_graph_answer, aliased, I64, COUNT, "donated",
             "parameters whose memory an output reuses", RP_NULLABLE),
    RP_FIELD(struct rp_graph_answer, aliased_bytes, I64, BYTES, "donated size",
             "size of these parameters", RP_NULLABLE),
    RP_FIELD(struct rp_graph_answer, constant_bytes, I64, BYTES, "constants",
             "size of all constants", RP_NULLABLE),
    RP_FIELD(struct rp_graph_answer, flops, I64, FLOP, "flops", "FLOPs of one execution",
             RP_NULLABLE),
    RP_FIELD(struct rp_graph_answer, transcendentals, I64, COUNT, "transcendentals",
             "evaluations of functions such as exp in one execution", RP_NULLABLE),
    RP_FIELD(struct rp_graph_answer, bytes, I64, BYTES, "traffic",
             "bytes read and written in one execution, without reuse", RP_NULLABLE),
    RP_FIELD(struct rp_graph_answer, sent_bytes, I64, BYTES, "sent",
             "bytes that a device sends to others in one execution, with ring algorithms",
             RP_NULLABLE),
    RP_FIELD_MAP(struct rp_graph_answer, opcodes, &opcode_type, "opcodes", "how often each occurs",
                 0),
    RP_FIELD_MAP(struct rp_graph_answer, clusters, &cluster_type, "clusters",
                 "groups of nodes that TensorFlow compiles together, and their sizes", 0),
    RP_FIELD_LIST(struct rp_graph_answer, lines, &line_type, "source lines",
                  "of the user's program, most flops first", 0),
    RP_FIELD_LIST(struct rp_graph_answer, communication, &comm_type, "communication",
                  "of a distributed program, by collective and axis, most first", 0),
    RP_FIELD_LIST(struct rp_graph_answer, communication_lines, &comm_line_type,
                  "communication by source line", "most first", 0),
    RP_FIELD_LIST(struct rp_graph_answer, aliases, &alias_type, NULL,
                  "outputs that reuse the memory of an input", 0),
    RP_FIELD_LIST(struct rp_graph_answer, modules, &module_type, "modules",
                  "modules of a dump folder", 0),
    RP_FIELD_LIST(struct rp_graph_answer, programs, &program_type, "programs",
                  "programs of several files, one row each", 0),
    RP_FIELD_LIST(struct rp_graph_answer, listing, &rp_type_string, "operations",
                  "the requested operations, one per line", 0),
    RP_FIELD_END};
static const struct rp_type graph_type = {"graph", sizeof(struct rp_graph_answer), graph_fields,
                                          NULL};

/* The same record with only the listing on the screen; NULL if memory ran out. */
static const struct rp_type *listing_type(struct rp_arena *arena)
{
    size_t n = sizeof graph_fields / sizeof *graph_fields;
    struct rp_field *fields = RP_ARENA_NEW(arena, struct rp_field, n);
    struct rp_type *type = RP_ARENA_NEW(arena, struct rp_type, 1);

    if (!fields || !type)
        return NULL;
    memcpy(fields, graph_fields, sizeof graph_fields);
    for (size_t i = 0; i + 1 < n; i++)
        if (strcmp(fields[i].key, "listing") != 0)
            fields[i].title = NULL;
    *type = graph_type;
    type->fields = fields;
    return type;
}

/* ---- one program ---- */

struct graph_ctx {
    struct rp_ctx *ctx;
    const struct rp_settings *settings;
    struct rp_result *result;
};

static enum rp_code graph_list(const struct graph_ctx *ctx, const struct rp_program *p,
                               struct rp_listing *listing, struct rp_err *err)
{
    struct rp_arena *arena = &ctx->result->arena;
    const char *near = rp_settings_text(ctx->settings, "near");
    const char *path = rp_settings_text(ctx->settings, "path");
    const char *grep = rp_settings_text(ctx->settings, "grep");
    int64_t hops = rp_settings_int(ctx->settings, "hops");

    if (rp_settings_flag(ctx->settings, "tree"))
        RP_TRY(rp_list_tree(p, arena, listing, err));
    if (near)
        RP_TRY(rp_list_near(p, near, (unsigned)hops, arena, listing, err));
    if (path)
        RP_TRY(rp_list_path(p, path, arena, listing, err));
    return grep ? rp_list_grep(p, grep, arena, listing, err) : RP_OK;
}

/* Takes aliases from the file that the user names, else from the module. */
static enum rp_code graph_aliases(const struct graph_ctx *ctx, const struct rp_program *p,
                                  struct rp_err *err)
{
    struct rp_arena *arena = &ctx->result->arena;
    const char *path = rp_settings_text(ctx->settings, "aliases");
    struct rp_alias_pair *pairs = NULL;
    uint32_t(*numbers)[2];
    struct rp_input *in;
    size_t n = 0;

    if (!path)
        return rp_graph_list_aliases(p, NULL, 0, arena, ctx->result->root, err);
    RP_TRY(rp_input_open(path, NULL, &in, err));
    enum rp_code code = rp_alias_dump_read(in, NULL, arena, &pairs, &n, err);
    rp_input_close(in);
    if (code != RP_OK)
        return rp_err_context(err, code, "reading '%s'", path);
    numbers = rp_arena_alloc(arena, (n + 1) * sizeof *numbers, _Alignof(uint32_t));
    RP_TRY(rp_err_need(numbers, err, "reading aliases"));
    for (size_t i = 0; i < n; i++) {
        numbers[i][0] = pairs[i].parameter;
        numbers[i][1] = pairs[i].output;
    }
    return rp_graph_list_aliases(p, (const uint32_t(*)[2])numbers, n, arena, ctx->result->root,
                                 err);
}

/* Sums the communication of distributed programs, by line if lines are known. */
static enum rp_code graph_communication(const struct rp_program *p, struct rp_arena *arena,
                                        struct rp_graph_answer *out, struct rp_err *err)
{
    struct rp_meshes meshes = {0};
    struct rp_comm comm = {0};
    struct rp_xref xref;

    out->sent_bytes = RP_ABSENT_I64;
    if (!rp_comm_has_any(p))
        return RP_OK;
    rp_meshes_of_program(&meshes, p, arena);
    enum rp_code code = rp_xref_init(&xref, p, err);
    if (code == RP_OK)
        code = rp_comm_count(&xref, &meshes, arena, &comm, err);
    rp_xref_release(&xref);
    if (code != RP_OK || !comm.nops)
        return code;
    out->sent_bytes = comm.wire_bytes >= (double)INT64_MAX ? INT64_MAX : (int64_t)comm.wire_bytes;
    out->communication = comm.collectives;
    out->ncommunication = comm.ncollectives;
    for (size_t i = 0; i < comm.nops && !out->ncommunication_lines; i++)
        if (comm.ops[i].line) {
            out->communication_lines = comm.lines;
            out->ncommunication_lines = comm.nlines;
        }
    return RP_OK;
}

static enum rp_code graph_program(void *user, const struct rp_loaded_program *loaded,
                                  struct rp_err *err)
{
    const struct graph_ctx *ctx = user;
    struct rp_graph_answer *root = ctx->result->root;
    struct rp_listing listing = {0};

    RP_TRY(rp_graph_summarize(loaded->program, loaded->format, &ctx->result->arena, root, err));
    RP_TRY(graph_aliases(ctx, loaded->program, err));
    RP_TRY(graph_communication(loaded->program, &ctx->result->arena, root, err));
    RP_TRY(graph_list(ctx, loaded->program, &listing, err));
    root->listing = listing.lines;
    root->nlisting = listing.n;
    if (rp_settings_has(ctx->settings, "grep") && !listing.n)
        ctx->result->answer = RP_ANSWER_NO;
    if (listing.n || ctx->result->answer)
        ctx->result->type = listing_type(&ctx->result->arena);
    RP_TRY(rp_err_need(ctx->result->type, err, "listing operations"));
    return rp_graph_draw(ctx->ctx, loaded->program, listing.ops, ctx->settings, &ctx->result->arena,
                         err);
}

/* Options that need a single program. */
static const char *const one_program_options[] = {
    "aliases",     "html", "heat", "svg",  "dot", "model-explorer",
    "tensorboard", "tree", "near", "path", "grep"};

static enum rp_code graph_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              const struct rp_settings *settings, struct rp_result *result,
                              struct rp_err *err)
{
    struct graph_ctx graph = {.ctx = ctx, .settings = settings, .result = result};
    struct rp_graph_folder folder;
    const char *module = rp_settings_text(settings, "module");
    const char *stage = rp_settings_text(settings, "stage");

    ((struct rp_graph_answer *)result->root)->sent_bytes = RP_ABSENT_I64;
    RP_TRY(rp_torch_graphs_list(dataset->sources, &dataset->limits, err));
    if (rp_dataset_count(dataset) == 1 && !module && !stage)
        return rp_each_program(ctx, dataset, graph_program, &graph, err);
    RP_TRY(rp_graph_folder_open(dataset, module, stage, &result->arena, &folder, err));
    if (folder.n == 1)
        return rp_each_program_of(ctx, dataset, folder.sources, 1, graph_program, &graph, err);
    bool history = rp_graph_is_history(&folder);
    for (size_t i = 0; i < sizeof one_program_options / sizeof *one_program_options; i++)
        if (rp_settings_has(settings, one_program_options[i]) &&
            !(history && strcmp(one_program_options[i], "html") == 0))
            return rp_err_set(err, RP_USAGE,
                              "'--%s' shows one program, but there are %zu; select one of a dump "
                              "folder with --module and --stage",
                              one_program_options[i], folder.n);
    if (history && rp_settings_has(settings, "html"))
        RP_TRY(rp_graph_draw_history(dataset, &folder, rp_settings_text(settings, "html"),
                                     &result->arena, err));
    return rp_graph_folder_list(ctx, dataset, &folder, result, err);
}

static const struct rp_option graph_options[] = {
    {"tree", 0, RP_OPT_FLAG, NULL, NULL, "the tree of computations and what they call", 0},
    {"near", 0, RP_OPT_TEXT, "OP", NULL, "an operation with its operands and users", 0},
    {"hops", 0, RP_OPT_INT, "0..1000", "1", "with --near: maximum distance in steps", 0},
    {"path", 0, RP_OPT_TEXT, "A,B", NULL, "the shortest data-flow path from A to B", 0},
    {"grep", 0, RP_OPT_TEXT, "WORDS", NULL,
     "find operations by op, name, shape, line, scope, in: 'op=dot shape~bf16'", 0},
    {"aliases", 0, RP_OPT_PATH, "FILE", NULL,
     "inputs and outputs that share memory, from a Ratex alias dump", 0},
    {"module", 0, RP_OPT_TEXT, "NAME", NULL,
     "dump folders: select modules by number, name or part of a name", 0},
    {"stage", 0, RP_OPT_TEXT, "STAGE", NULL,
     "dump folders: select source, before, after, run, a pass number or part of a pass name", 0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a page with a picture; of a module of a dump folder with all its stages", 0},
    {"heat", 0, RP_OPT_PATH, "TRACE", NULL,
     "with --html: colour instructions by the time that a trace of XLA measured", 0},
    {"svg", 0, RP_OPT_PATH, "FILE", NULL, "also write the picture as an SVG file", 0},
    {"model-explorer", 0, RP_OPT_PATH, "FILE", NULL, "also write a JSON graph for Model Explorer",
     0},
    {"tensorboard", 0, RP_OPT_PATH, "DIR", NULL,
     "also write an events file for TensorBoard's graph page", 0},
    {"dot", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a Graphviz file of what is listed, or of the whole program", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_graph = {
    .question =
        {.name = "graph",
         .group = "programs",
         .summary = "what a program consists of and what it costs",
         .details =
             "HLO as text or protobuf, TensorFlow graphs, StableHLO, lazy-tensor dumps; "
             "also compressed. The hash ignores names: two files of the same program have the "
             "same hash. The page that --html writes works without a network.",
         .examples = "reprise graph module.txt\tsummary and opcodes\n"
                     "reprise graph module.hlo.pb --grep 'op=dot line=model.py:12'\t"
                     "what a line of code became\n"
                     "reprise graph module.txt --near dot.7 --hops 2\taround an operation\n"
                     "reprise graph module.txt --html page.html\ta picture for the browser\n"
                     "reprise graph module.txt --html page.html --heat trace.json.gz\t"
                     "... with measured times\n"
                     "reprise graph dump/\tthe modules of a folder and their stages\n"
                     "reprise graph dump/ --module jit_step --stage after\tone of them\n"
                     "reprise graph dump/ --module jit_step --html page.html\t"
                     "what each pass changed\n",
         .accepts = RP_ACCEPTS_PROGRAMS,
         .options = graph_options,
         .type = &graph_type},
    .run = graph_run};
