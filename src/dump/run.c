/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump run` finds what to set so that the frameworks of a command write what they compile. The
 * library only makes the plan; the command line applies it and runs the command (cli/cmd_dump.c),
 * or prints it (--dry-run).
 *
 *     DIR/xla  DIR/jax  DIR/tensorflow  DIR/torch  DIR/lazy  DIR/ratex  DIR/blade
 *
 * Under a launcher, DIR/rank3/xla and so on: in this process if it has a rank, else by the
 * preloaded library reprise-dump.so in the processes that have one (capture/dump/).
 */
#include "abi/launcher_env.h"
#include "dump/settings.h"
#include "dump/words.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the answer ---- */

struct run_framework {
    const char *name, *version, *package;
};

struct run_root {
    const char *folder, *preset, *interpreter, *summary;
    int64_t rank;
    size_t nframeworks, nvariables, ndropped, nfolders, nwarnings;
    struct run_framework *frameworks;
    struct rp_dump_variable *variables;
    struct rp_dump_dropped *dropped;
    const char **folders, **warnings;
};

static const struct rp_field framework_fields[] = {
    RP_FIELD(struct run_framework, name, STR, NONE, "framework", "its name", 0),
    RP_FIELD(struct run_framework, version, STR, NONE, "version", "version of the package, or null",
             0),
    RP_FIELD(struct run_framework, package, STR, NONE, "found in", "folder of the package",
             RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type framework_type = {"framework", sizeof(struct run_framework),
                                              framework_fields, NULL};

static const struct rp_field variable_fields[] = {
    RP_FIELD(struct rp_dump_variable, name, STR, NONE, "variable", "its name", 0),
    RP_FIELD(struct rp_dump_variable, value, STR, NONE, "value", "what is set", RP_SHORTEN),
    RP_FIELD(struct rp_dump_variable, was, STR, NONE, NULL, "the user's own value, or null", 0),
    RP_FIELD(struct rp_dump_variable, why, STR, NONE, "for", "what it makes the framework do",
             RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type variable_type = {"variable", sizeof(struct rp_dump_variable),
                                             variable_fields, NULL};

static const struct rp_field dropped_fields[] = {
    RP_FIELD(struct rp_dump_dropped, variable, STR, NONE, "variable", "where it was", 0),
    RP_FIELD(struct rp_dump_dropped, flag, STR, NONE, "flag", "the flag as the user wrote it",
             RP_SHORTEN),
    RP_FIELD(struct rp_dump_dropped, because, STR, NONE, "because", "why it is not passed on",
             RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type dropped_type = {"dropped", sizeof(struct rp_dump_dropped),
                                            dropped_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct run_root, folder, STR, NONE, "folder", "folder of the dumps", RP_SHORTEN),
    RP_FIELD(struct run_root, rank, I64, NONE, "rank", "rank of this process under its launcher",
             RP_NULLABLE),
    RP_FIELD(struct run_root, preset, STR, NONE, "preset", "what is written down", 0),
    RP_FIELD(struct run_root, interpreter, STR, NONE, "interpreter",
             "interpreter of the command, or null", 0),
    RP_FIELD(struct run_root, summary, STR, NONE, NULL, "one line", 0),
    RP_FIELD_LIST(struct run_root, frameworks, &framework_type, "frameworks",
                  "that the interpreter finds", 0),
    RP_FIELD_LIST(struct run_root, variables, &variable_type, "variables", "that are set", 0),
    RP_FIELD_LIST(struct run_root, dropped, &dropped_type, "flags that would end the process",
                  "flags of the user's that are left out, or kept by --keep-flags", 0),
    RP_FIELD_LIST(struct run_root, folders, &rp_type_string, NULL, "folders to make", 0),
    RP_FIELD_LIST(struct run_root, warnings, &rp_type_string, "warnings", "what to know", RP_WARN),
    RP_FIELD_END};
static const struct rp_type run_type = {"dump_run", sizeof(struct run_root), root_fields,
                                        "variables"};

/* ---- planning ---- */

enum preset { QUICK, PASSES, FUSION, MEMORY, REPLAY };

struct plan {
    struct rp_dump_environment env;
    const struct rp_settings *settings;
    const char *folder;
    enum preset preset;
    RP_VEC(const char *) folders;
    struct rp_err *err;
};

static bool plan_has(const struct plan *p, enum rp_dump_framework framework)
{
    return p->env.frameworks->of[framework].present;
}

/* Plans a path in the folder, whose first part is made before the command runs. */
static const char *plan_path(struct plan *p, const char *folder, const char *file)
{
    const char *path = rp_arena_textf(p->env.arena, "%s/%s", p->folder, folder);
    bool known = false;

    for (size_t i = 0; i < p->folders.n; i++)
        known |= !strcmp(p->folders.at[i], path);
    if (!known && rp_vec_push(&p->folders, path, p->err) != RP_OK)
        return "";
    return file ? rp_arena_textf(p->env.arena, "%s/%s", path, file) : path;
}

static enum rp_code plan_set(struct plan *p, const char *name, const char *value, const char *why)
{
    return rp_dump_set(&p->env, name, value, why, p->err);
}

static enum rp_code plan_offer(struct plan *p, const char *name, const char *value, const char *why)
{
    return rp_dump_offer(&p->env, name, value, why, p->err);
}

/* What is dumped around passes: the user's expression, else what the preset needs. fusion: the
   search of priority fusion is written only if the expression matches that pass. */
static const char *pass_expression(const struct plan *p)
{
    const char *given = rp_settings_text(p->settings, "pass");

    if (given)
        return given;
    return p->preset == PASSES ? ".*" : p->preset == FUSION ? ".*fusion.*" : NULL;
}

static enum rp_code plan_jax(struct plan *p)
{
    RP_TRY(plan_set(p, "JAX_DUMP_IR_TO", plan_path(p, "jax", NULL), "what JAX gives to XLA"));
    if (p->preset != QUICK)
        RP_TRY(plan_offer(p, "JAX_DUMP_IR_MODES", "stablehlo,jaxpr", "jaxprs beside StableHLO"));
    return plan_offer(p, "JAX_ENABLE_COMPILATION_CACHE", "false",
                      "what is cached is not compiled, and so not dumped");
}

/* Graphs are dumped if verbose messages are on. Enabling these by file costs a few kilobytes of
   messages, which a minimum level hides; enabling them by level costs hundreds. */
static enum rp_code plan_tensorflow(struct plan *p)
{
    static const struct rp_dump_flag debug = {"tf_xla_clustering_debug", "true", false};
    const char *level = rp_settings_text(p->settings, "log-level");

    RP_TRY(plan_set(p, "TF_DUMP_GRAPH_PREFIX", plan_path(p, "tensorflow", NULL),
                    "graphs before and after each rewrite"));
    RP_TRY(rp_dump_flags_merge(&p->env, "TF_XLA_FLAGS", RP_FLAG_TF, &debug, 1,
                               "graphs around auto-clustering", p->err));
    if (level)
        return RP_OK;
    RP_TRY(plan_offer(p, "TF_CPP_VMODULE",
                      "mark_for_compilation_pass=1,encapsulate_subgraphs_pass=1,build_xla_ops_pass="
                      "1,functionalize_control_flow=1,xla_compiler=2,meta_optimizer=1",
                      "TF_DUMP_GRAPH_PREFIX writes only where verbose messages are on"));
    return plan_offer(p, "TF_CPP_MIN_LOG_LEVEL", "1", "keeps those messages off the screen");
}

/* Filters the names of logs, which differ between versions, because an unknown one raises an
   exception. */
static const char *known_logs(struct plan *p, const char *const *names)
{
    const char *package = p->env.frameworks->of[RP_USES_PYTORCH].package, *list = "";
    char path[PATH_MAX];

    if (!package ||
        snprintf(path, sizeof path, "%s/_logging/_registrations.py", package) >= (int)sizeof path)
        return "";
    for (; *names; names++)
        if (rp_file_has_name(path, *names))
            list = rp_arena_textf(p->env.arena, "%s%s%s", list, *list ? "," : "", *names);
    return list;
}

/* Only a few logs, because they also go to the screen; TORCH_TRACE has all graphs. */
static enum rp_code plan_torch_logs(struct plan *p)
{
    static const char *const plain[] = {"graph_breaks", "recompiles", NULL};
    static const char *const fusion[] = {"graph_breaks", "recompiles", "fusion", NULL};
    const char *logs = known_logs(p, p->preset == FUSION ? fusion : plain),
               *own = getenv("TORCH_LOGS");

    if (!*logs)
        return RP_OK;
    if (own && *own)
        logs = rp_arena_textf(p->env.arena, "%s,%s", own, logs);
    RP_TRY(
        plan_offer(p, "TORCH_LOGS_OUT", plan_path(p, "torch", "log.txt"), "the log in a file too"));
    if (own && *own) {
        struct rp_dump_variable v = {"TORCH_LOGS", logs, own, "what torch.compile logs"};

        return rp_vec_push(&p->env.variables, v, p->err);
    }
    return plan_set(p, "TORCH_LOGS", logs, "what torch.compile logs");
}

static enum rp_code plan_pytorch(struct plan *p)
{
    RP_TRY(plan_torch_logs(p));
    RP_TRY(plan_set(p, "TORCH_TRACE", plan_path(p, "torch", "trace"),
                    "every graph and kernel of torch.compile, for tlparse"));
    if (p->preset == REPLAY || p->preset == FUSION) {
        RP_TRY(plan_offer(p, "TORCH_COMPILE_DEBUG", "1", "graphs, IR and code of Inductor"));
        RP_TRY(plan_set(p, "TORCH_COMPILE_DEBUG_DIR", plan_path(p, "torch", NULL),
                        "where they are written"));
    }
    return plan_set(p, "LTC_SAVE_TENSORS_FILE", plan_path(p, "lazy", "ltc.txt"),
                    "graphs of torch.lazy");
}

static enum rp_code plan_torch_xla(struct plan *p)
{
    RP_TRY(plan_set(p, "XLA_SAVE_TENSORS_FILE", plan_path(p, "lazy", "xla.txt"),
                    "graphs of torch_xla"));
    RP_TRY(plan_offer(p, "XLA_IR_DEBUG", "1", "Python lines in these graphs"));
    RP_TRY(plan_offer(p, "XLA_HLO_DEBUG", "1", "Python lines in HLO"));
    RP_TRY(plan_offer(p, "PT_XLA_DEBUG_LEVEL", "1", "why each compilation happened"));
    return plan_offer(p, "PT_XLA_DEBUG_FILE", plan_path(p, "lazy", "debug.txt"),
                      "where that is written");
}

static enum rp_code plan_ratex(struct plan *p)
{
    const char *aliasing = getenv("ENABLE_PARAM_ALIASING");

    if (!plan_has(p, RP_USES_PYTORCH))
        RP_TRY(plan_set(p, "LTC_SAVE_TENSORS_FILE", plan_path(p, "lazy", "ltc.txt"),
                        "graphs of Ratex"));
    RP_TRY(plan_offer(p, "LTC_IR_DEBUG", "1", "Python lines in these graphs"));
    RP_TRY(plan_set(p, "RATEX_SAVE_IR_FILE", plan_path(p, "ratex", "module.json"),
                    "the last RAF module"));
    RP_TRY(plan_set(p, "RATEX_DUMP_ALIAS", plan_path(p, "ratex", "alias.txt"),
                    "inputs and outputs that share memory"));
    if (!aliasing || (strcmp(aliasing, "true") != 0 && strcmp(aliasing, "1") != 0))
        return rp_dump_warn(&p->env, p->err,
                            "ratex/alias.txt stays empty without ENABLE_PARAM_ALIASING=true, which "
                            "is not set here because it changes what the program does");
    return RP_OK;
}

static enum rp_code plan_bladedisc(struct plan *p)
{
    RP_TRY(plan_offer(p, "DISC_DEBUG", "true", "BladeDISC keeps its files, and logs its passes"));
    RP_TRY(plan_set(p, "DISC_DEBUG_DUMP_DIR", plan_path(p, "blade", NULL), "where they are kept"));
    RP_TRY(plan_offer(p, "TORCH_BLADE_DEBUG_LOG", "true", "MHLO of every cluster"));
    RP_TRY(plan_set(p, "TORCH_DISC_DUMP_PREFIX", plan_path(p, "blade", NULL), "where it is kept"));
    if (p->preset == REPLAY)
        return plan_offer(p, "TORCH_DISC_ENABLE_REPLAY_ON_CLUSTER", "true",
                          "program and inputs of every cluster");
    return RP_OK;
}

/* ---- the word ---- */

static enum rp_code plan_make(struct plan *p)
{
    static const struct {
        enum rp_dump_framework framework;
        enum rp_code (*plan)(struct plan *p);
    } rows[] = {{RP_USES_JAX, plan_jax},         {RP_USES_TENSORFLOW, plan_tensorflow},
                {RP_USES_PYTORCH, plan_pytorch}, {RP_USES_TORCH_XLA, plan_torch_xla},
                {RP_USES_RATEX, plan_ratex},     {RP_USES_BLADEDISC, plan_bladedisc}};
    const struct rp_frameworks *f = p->env.frameworks;

    if (!f->n || plan_has(p, RP_USES_JAX) || plan_has(p, RP_USES_TENSORFLOW) ||
        plan_has(p, RP_USES_TORCH_XLA)) {
        /* Text is requested by name, because any other format would turn it off; but not beside
         * snapshots, which would become text, and which turn the dumps of programs off anyway. */
        const char *module = rp_settings_text(p->settings, "module"), *pass = pass_expression(p);
        struct rp_dump_flag flags[12];
        size_t n = 0;
        flags[n++] = (struct rp_dump_flag){"xla_dump_to", plan_path(p, "xla", NULL), true};
        if (p->preset != REPLAY)
            flags[n++] = (struct rp_dump_flag){"xla_dump_hlo_as_text", "true", true};
        if (module)
            flags[n++] = (struct rp_dump_flag){"xla_dump_hlo_module_re", module, true};
        if (pass)
            flags[n++] = (struct rp_dump_flag){"xla_dump_hlo_pass_re", pass,
                                               rp_settings_has(p->settings, "pass")};
        if (p->preset == PASSES)
            flags[n++] = (struct rp_dump_flag){"xla_dump_module_metadata", "true", true};
        if (p->preset == MEMORY || p->preset == REPLAY)
            flags[n++] = (struct rp_dump_flag){"xla_dump_hlo_as_proto", "true", true};
        if (p->preset == REPLAY) {
            flags[n++] = (struct rp_dump_flag){"xla_dump_large_constants", "true", true};
            flags[n++] = (struct rp_dump_flag){"xla_dump_hlo_unoptimized_snapshots", "true", true};
        }
        RP_TRY(rp_dump_flags_merge(&p->env, "XLA_FLAGS", RP_FLAG_XLA, flags, n,
                                   "XLA's dumps of what it compiles", p->err));
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (plan_has(p, rows[i].framework))
            RP_TRY(rows[i].plan(p));
    if (!f->n && !rp_settings_has(p->settings, "framework"))
        RP_TRY(rp_dump_warn(&p->env, p->err,
                            "%s: only the flags of XLA are set; --framework names others",
                            f->interpreter ? "the interpreter of the command has no framework"
                                           : "there is no Python interpreter in the command"));
    /* Sets verbose messages of TensorFlow and XLA, which share these variables; the second name is
     * for old versions. */
    const char *level = rp_settings_text(p->settings, "log-level");
    if (!level)
        return RP_OK;
    RP_TRY(plan_set(p, "TF_CPP_MIN_LOG_LEVEL", "0", "verbose messages need it"));
    RP_TRY(plan_set(p, "TF_CPP_MAX_VLOG_LEVEL", level, "verbose messages, and graphs from 1 on"));
    return plan_set(p, "TF_CPP_MIN_VLOG_LEVEL", level, "the same in old versions");
}

/* The path of the folder without links and dots; it need not exist. */
static const char *absolute(const char *folder, struct rp_arena *arena)
{
    char cwd[PATH_MAX], real[PATH_MAX];

    if (realpath(folder, real))
        return rp_arena_text(arena, real);
    if (*folder == '/' || !getcwd(cwd, sizeof cwd))
        return rp_arena_text(arena, folder);
    return rp_arena_textf(arena, "%s/%s", cwd,
                          folder + (folder[0] == '.' && folder[1] == '/' ? 2 : 0));
}

static const char *summary_of(const struct plan *p)
{
    const struct rp_frameworks *f = p->env.frameworks;
    const char *list = "";

    for (size_t i = 0; i < RP_USES_COUNT; i++)
        if (f->of[i].present)
            list = rp_arena_textf(p->env.arena, "%s%s%s%s%s", list, *list ? ", " : "",
                                  f->of[i].name, f->of[i].version ? " " : "",
                                  f->of[i].version ? f->of[i].version : "");
    return rp_arena_textf(p->env.arena, "%s", *list ? list : "no framework found");
}

static void copy_plan(const struct plan *p, struct run_root *root)
{
    const struct rp_frameworks *f = p->env.frameworks;
    struct rp_arena *arena = p->env.arena;

    root->frameworks = RP_ARENA_NEW(arena, struct run_framework, RP_USES_COUNT);
    root->variables = RP_ARENA_NEW(arena, struct rp_dump_variable, p->env.variables.n + 1);
    root->dropped = RP_ARENA_NEW(arena, struct rp_dump_dropped, p->env.dropped.n + 1);
    root->folders = RP_ARENA_NEW(arena, const char *, p->folders.n + 1);
    root->warnings = RP_ARENA_NEW(arena, const char *, p->env.warnings.n + 1);
    if (!root->frameworks || !root->variables || !root->dropped || !root->folders ||
        !root->warnings)
        return;
    for (size_t i = 0; i < RP_USES_COUNT; i++)
        if (f->of[i].present)
            root->frameworks[root->nframeworks++] =
                (struct run_framework){f->of[i].name, f->of[i].version, f->of[i].package};
    for (size_t i = 0; i < p->env.variables.n; i++)
        root->variables[root->nvariables++] = p->env.variables.at[i];
    for (size_t i = 0; i < p->env.dropped.n; i++)
        root->dropped[root->ndropped++] = p->env.dropped.at[i];
    for (size_t i = 0; i < p->folders.n; i++)
        root->folders[root->nfolders++] = p->folders.at[i];
    for (size_t i = 0; i < p->env.warnings.n; i++)
        root->warnings[root->nwarnings++] = p->env.warnings.at[i];
}

static enum preset preset_of(const char *name)
{
    static const char *const names[] = {[QUICK] = "quick",
                                        [PASSES] = "passes",
                                        [FUSION] = "fusion",
                                        [MEMORY] = "memory",
                                        [REPLAY] = "replay"};

    for (int i = QUICK; i <= REPLAY; i++)
        if (!strcmp(name, names[i]))
            return (enum preset)i;
    return QUICK;
}

static enum rp_code run_plan(const struct rp_dump_call *call, struct rp_result *result,
                             struct rp_err *err)
{
    static const char *const ranks[] = RP_LAUNCHER_RANKS;
    struct run_root *root = result->root;
    struct rp_frameworks frameworks;
    struct plan p = {.env = {.arena = &result->arena,
                             .frameworks = &frameworks,
                             .keep = rp_settings_flag(call->settings, "keep-flags")},
                     .settings = call->settings,
                     .err = err};
    const char **words = RP_ARENA_NEW(&result->arena, const char *, call->settings->ngiven + 1);
    int32_t rank = rp_launcher_number(ranks);
    size_t n = 0;

    while (words && (words[n] = rp_settings_nth(call->settings, "source", n)))
        n++;
    if (!n)
        return rp_err_set(err, RP_USAGE, "'dump run' needs a command: reprise dump run -- COMMAND");
    root->preset = rp_settings_text(call->settings, "preset");
    p.preset = preset_of(root->preset);
    root->folder = absolute(rp_settings_text(call->settings, "into"), &result->arena);
    root->rank = rank < 0 ? RP_ABSENT_I64 : rank;
    p.folder = rank < 0 ? root->folder
                        : rp_arena_textf(&result->arena, "%s/rank%d", root->folder, (int)rank);
    enum rp_code code = rp_frameworks_find(words, n, rp_settings_text(call->settings, "framework"),
                                           &result->arena, &frameworks, err);
    if (code == RP_OK)
        code = plan_make(&p);
    if (code == RP_OK) {
        root->interpreter = frameworks.interpreter;
        root->summary = summary_of(&p);
        copy_plan(&p, root);
    }
    rp_vec_release(&p.folders);
    rp_dump_environment_release(&p.env);
    return code == RP_OK ? rp_arena_check(&result->arena, "planning the run", err) : code;
}

const struct rp_dump_word rp_dump_run = {
    .name = "run",
    .summary = "run a program so that its frameworks write down what they compile",
    .options = "preset into module pass log-level max-bytes keep-flags dry-run framework",
    .any = true,
    .type = &run_type,
    .run = run_plan};
