/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the names of files in a folder of compiler dumps. A name written by XLA is
 *
 *     [<microseconds>.] module_<id> [.<module>] .<suffix> .<extension> [.gz]
 *
 * and both module names and suffixes may contain dots, so the suffix is the longest tail that is in
 * the table below. If none fits, the module name ends at the first dot and is marked as a guess.
 * TensorFlow's names have a table of their own: "<stage>[_<n>].pbtxt". Cost: the number of dots in
 * a name times the rows of the table.
 */
#include "formats/dump/folder.h"

#include "base/text.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

struct slice {
    const char *at;
    size_t n;
};

static bool begins_with(struct slice s, const char *head)
{
    size_t n = strlen(head);

    return s.n >= n && memcmp(s.at, head, n) == 0;
}

static struct slice slice_skip(struct slice s, size_t n)
{
    return (struct slice){s.at + n, s.n - n};
}

/* ---- patterns ---- */

/* '#' matches a number, '~' bytes without a dot, '*' any bytes; each matches at least one. */
static bool pattern_fits(const char *pattern, const char *s, const char *end)
{
    for (; *pattern; pattern++) {
        if (*pattern != '#' && *pattern != '~' && *pattern != '*') {
            if (s == end || *s++ != *pattern)
                return false;
            continue;
        }
        for (const char *t = s; t < end; t++) {
            if ((*pattern == '#' && !isdigit((unsigned char)*t)) || (*pattern == '~' && *t == '.'))
                return false;
            if (pattern_fits(pattern + 1, t + 1, end))
                return true;
        }
        return false;
    }
    return s == end;
}

static bool slice_fits(const char *pattern, struct slice s)
{
    return pattern_fits(pattern, s.at, s.at + s.n);
}

static size_t count_digits(struct slice s)
{
    size_t n = 0;

    while (n < s.n && isdigit((unsigned char)s.at[n]))
        n++;
    return n;
}

/* The first number in the text; a number that is too large counts as the largest. */
static uint32_t first_number(struct slice s)
{
    uint64_t value = 0;

    while (s.n && !isdigit((unsigned char)*s.at))
        s = slice_skip(s, 1);
    for (size_t i = 0, n = count_digits(s); i < n && value < UINT32_MAX; i++)
        value = value * 10 + (uint64_t)(s.at[i] - '0');
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* ---- extensions ---- */

enum form { FORM_NONE, FORM_TEXT, FORM_PROTO, FORM_DRAWING, FORM_LLVM, FORM_PTX, FORM_OBJECT };

static const struct extension {
    const char *text;
    enum form form;
} extensions[] = {
    {"-pre-optimization.mlir", FORM_LLVM}, /* of kernels that are being lowered to LLVM */
    {"-post-optimization.mlir", FORM_LLVM},
    {"-post-lowering.mlir", FORM_LLVM},
    {".hlo.pb", FORM_PROTO},
    {".pb", FORM_PROTO},
    {".pbtxt", FORM_TEXT},
    {".textproto", FORM_TEXT},
    {".txt", FORM_TEXT},
    {".hlo", FORM_TEXT},
    {".mlir", FORM_TEXT},
    {".top_level.html", FORM_DRAWING},
    {".html", FORM_DRAWING},
    {".dot", FORM_DRAWING},
    {".svg", FORM_DRAWING},
    {".url", FORM_DRAWING},
    {".pyz", FORM_DRAWING},
    {".ll", FORM_LLVM},
    {".bc", FORM_LLVM},
    {".ptx", FORM_PTX},
    {".cubin", FORM_OBJECT},
    {".hsaco", FORM_OBJECT},
    {".o", FORM_OBJECT},
    {".log", FORM_NONE}};

static enum form cut_extension(struct slice *name)
{
    static const char *const packed[] = {".gz", ".xz", ".zst"};

    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (rp_text_ends_n(name->at, name->n, packed[i]))
            name->n -= strlen(packed[i]);
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (rp_text_ends_n(name->at, name->n, extensions[i].text)) {
            name->n -= strlen(extensions[i].text);
            return extensions[i].form;
        }
    return FORM_NONE;
}

/* ---- XLA ---- */

/* Rows are tried in order, so the tails of the optimised program come before its general row. */
static const struct suffix {
    const char *pattern;
    enum rp_dump_role role;
    enum rp_dump_point point;
} suffixes[] = {
    {"before_optimizations", RP_DUMP_PROGRAM, RP_DUMP_AT_BEFORE},
    {"execution_#.hlo_unoptimized_snapshot", RP_DUMP_EXECUTION, RP_DUMP_AT_RUN},
    {"execution_#.hlo_snapshot", RP_DUMP_EXECUTION, RP_DUMP_AT_RUN},
    {"snapshot.#", RP_DUMP_EXECUTION, RP_DUMP_AT_RUN},
    {"snapshot", RP_DUMP_EXECUTION, RP_DUMP_AT_RUN},
    {"buffer-assignment", RP_DUMP_BUFFERS, RP_DUMP_AT_NONE},
    {"thunk_sequence", RP_DUMP_THUNKS, RP_DUMP_AT_NONE},
    {"thunk_sequence_~", RP_DUMP_THUNKS, RP_DUMP_AT_NONE},
    {"thunk_metadata", RP_DUMP_THUNK_METADATA, RP_DUMP_AT_NONE},
    {"metadata", RP_DUMP_PASS_TIMES, RP_DUMP_AT_NONE},
    {"priority_fusion_dump", RP_DUMP_FUSION_LOG, RP_DUMP_AT_NONE},
    {"config", RP_DUMP_CONFIG, RP_DUMP_AT_NONE},
    {"debug_options", RP_DUMP_CONFIG, RP_DUMP_AT_NONE},
    {"compile_options", RP_DUMP_CONFIG, RP_DUMP_AT_NONE},
    {"gpu_target_config", RP_DUMP_TARGET, RP_DUMP_AT_NONE},
    {"autotune_results", RP_DUMP_AUTOTUNE, RP_DUMP_AT_NONE},
    {"obj-file.*", RP_DUMP_OBJECT, RP_DUMP_AT_NONE},
    {"ir-no-opt", RP_DUMP_LLVM, RP_DUMP_AT_NONE},
    {"ir-with-opt", RP_DUMP_LLVM, RP_DUMP_AT_NONE},
    {"#.ir-no-opt", RP_DUMP_LLVM, RP_DUMP_AT_NONE},
    {"#.ir-with-opt", RP_DUMP_LLVM, RP_DUMP_AT_NONE},
    {"#.~.after_~.before_~", RP_DUMP_PROGRAM, RP_DUMP_AT_PASS},
    {"#.~.after_~", RP_DUMP_PROGRAM, RP_DUMP_AT_PASS},
    {"#.~.before_~", RP_DUMP_PROGRAM, RP_DUMP_AT_PASS},
    {"after_spmd_partitioner", RP_DUMP_PROGRAM, RP_DUMP_AT_NAMED},
    {"before_config_assignment", RP_DUMP_PROGRAM, RP_DUMP_AT_NAMED},
};

/* What may follow "<device>_after_optimizations". */
static const struct suffix tails[] = {
    {"-buffer-assignment", RP_DUMP_BUFFERS, RP_DUMP_AT_NONE},
    {"-buffer-assignment-values", RP_DUMP_VALUES, RP_DUMP_AT_NONE},
    {"-live-range", RP_DUMP_LIVE_RANGE, RP_DUMP_AT_NONE},
    {"-memory-usage-report", RP_DUMP_MEMORY_REPORT, RP_DUMP_AT_NONE},
    {"*", RP_DUMP_PROGRAM, RP_DUMP_AT_BEYOND},
};

/* For "sm_9.0a_gpu_after_optimizations-x" the text after "optimizations", or else a NULL slice.
   Only the names of NVIDIA's devices contain a dot. */
static struct slice behind_optimised(struct slice s)
{
    static const char words[] = "after_optimizations";
    bool dotted = begins_with(s, "sm_");

    for (size_t i = 0; i + sizeof words - 1 <= s.n && (dotted || s.at[i] != '.'); i++)
        if (memcmp(s.at + i, words, sizeof words - 1) == 0 && (!i || s.at[i - 1] == '_'))
            return slice_skip(s, i + sizeof words - 1);
    return (struct slice){0};
}

static bool known_suffix(struct slice s, struct rp_dump_name *out)
{
    struct slice tail = behind_optimised(s);
    const struct suffix *row = tail.at ? tails : suffixes;
    size_t n = tail.at ? sizeof tails / sizeof *tails : sizeof suffixes / sizeof *suffixes;

    if (tail.at && !tail.n) {
        out->role = RP_DUMP_PROGRAM;
        out->point = RP_DUMP_AT_AFTER;
        return true;
    }
    for (size_t i = 0; i < n; i++, row++)
        if (slice_fits(row->pattern, tail.at ? tail : s)) {
            if (row->point == RP_DUMP_AT_PASS && count_digits(s) < 4)
                continue; /* "f.7.g.after_x" is a name with dots */
            out->role = row->role;
            out->point = row->point;
            return true;
        }
    return false;
}

static void set_form(struct rp_dump_name *out, enum form form)
{
    static const enum rp_dump_role by_form[] = {
        [FORM_LLVM] = RP_DUMP_LLVM, [FORM_PTX] = RP_DUMP_PTX, [FORM_OBJECT] = RP_DUMP_OBJECT};

    if (form >= FORM_LLVM)
        out->role = by_form[form];
    if (form == FORM_DRAWING)
        out->role = RP_DUMP_DRAWING;
    if (form == FORM_NONE && out->role == RP_DUMP_PROGRAM)
        out->role = RP_DUMP_OTHER;
    out->proto = form == FORM_PROTO;
    if (out->role != RP_DUMP_PROGRAM && out->role != RP_DUMP_EXECUTION) {
        out->point = RP_DUMP_AT_NONE;
        out->stage_n = 0;
    }
}

/* Splits what follows "module_<id>." into name and suffix, wherever one ends and the other
   begins. */
static void split_module(struct slice rest, enum form form, struct rp_dump_name *out)
{
    const char *dot = memchr(rest.at, '.', rest.n);

    out->module = rest.at;
    out->module_n = dot ? (size_t)(dot - rest.at) : rest.n;
    out->role = RP_DUMP_OTHER;
    out->point = RP_DUMP_AT_NONE;
    for (size_t i = 0; i < rest.n; i++) {
        struct slice suffix = slice_skip(rest, i);

        if ((i && rest.at[i - 1] != '.') || !known_suffix(suffix, out))
            continue;
        out->module_n = i ? i - 1 : 0;
        /* the name of a kernel may come before it: "jit_f.add_fusion_kernel_module.ir-no-opt" */
        out->sure = out->role != RP_DUMP_LLVM;
        out->stage = suffix.at;
        out->stage_n = suffix.n;
        out->number = first_number(suffix);
        break;
    }
    set_form(out, form);
}

/* Takes the id after "module_"; false if there is none, as in old snapshots. */
static bool take_id(struct slice *s, int64_t *id)
{
    size_t n = count_digits(*s);

    if (!n || n > 15 || (s->n > n && s->at[n] != '.'))
        return false;
    *id = 0;
    for (size_t i = 0; i < n; i++)
        *id = *id * 10 + (s->at[i] - '0');
    *s = slice_skip(*s, n < s->n ? n + 1 : n);
    return true;
}

static bool read_xla(struct slice file, struct rp_dump_name *out)
{
    size_t stamp = count_digits(file);

    if (stamp >= 10 && file.n > stamp && file.at[stamp] == '.')
        file = slice_skip(file, stamp + 1);
    if (!begins_with(file, "module_"))
        return false;
    file = slice_skip(file, 7);
    enum form form = cut_extension(&file);
    if (take_id(&file, &out->id)) {
        split_module(file, form, out);
        return file.n > 0;
    }
    split_module(file, form, out);
    return out->sure; /* without an id or a suffix of XLA it is another file */
}

/* "module_3976.jit_step/module.mlir": the folder names the module. */
static bool read_subfolder(struct slice folder, struct slice file, struct rp_dump_name *out)
{
    enum form form = cut_extension(&file);

    if (!begins_with(folder, "module_"))
        return false;
    folder = slice_skip(folder, 7);
    if (!take_id(&folder, &out->id))
        return false;
    out->module = folder.at;
    out->module_n = folder.n;
    out->sure = true;
    if (slice_fits("module", file)) {
        out->role = RP_DUMP_PROGRAM;
        out->point = RP_DUMP_AT_SOURCE;
        out->stage = "source";
        out->stage_n = 6;
    } else if (slice_fits("compile_options", file)) {
        out->role = RP_DUMP_CONFIG;
    } else if (slice_fits("topology", file)) {
        out->role = RP_DUMP_TARGET;
    } else {
        return false;
    }
    set_form(out, form);
    return true;
}

/* ---- TensorFlow and JAX ---- */

/* The graphs in the order in which TensorFlow makes them. */
static const char *const tf_graphs[] = {
    "encapsulate_xla_computations_before",
    "encapsulate_xla_computations_halfway",
    "encapsulate_xla_computations_after",
    "functionalize_before",
    "functionalize_after",
    "before_mark_for_compilation",
    "mark_for_compilation",
    "mark_for_compilation_annotated",
    "before_increase_dynamism_for_auto_jit_pass",
    "increase_dynamism_for_auto_jit_pass",
    "encapsulate_subgraphs_before",
    "encapsulate_subgraphs_after",
    "build_xla_ops",
    "build_xla_launch_ops",
    "variable_merger_pass_before",
    "EnsureMemoryTypes",
    "isolate_deep_ops_before",
    "isolate_deep_ops_after",
};

/* After one of these heads comes the cluster; longer heads come first. */
static const struct {
    const char *head;
    uint32_t order;
} tf_clusters[] = {
    {"encapsulate_subgraphs_subgraph_", 0},
    {"encapsulate_fdef_graph_", 1},
    {"encapsulate_fdef_", 2},
    {"xla_compile_function_", 3},
    {"xla_compile_graph_", 4},
};

static bool read_tf_cluster(struct slice name, struct rp_dump_name *out)
{
    for (size_t i = 0; i < sizeof tf_clusters / sizeof *tf_clusters; i++)
        if (begins_with(name, tf_clusters[i].head)) {
            size_t n = strlen(tf_clusters[i].head);

            out->module = name.at + n;
            out->module_n = name.n - n;
            out->stage = name.at;
            out->stage_n = n - 1;
            out->number = tf_clusters[i].order;
            return out->module_n > 0;
        }
    return false;
}

/* "mark_for_compilation_1": the second graph that went this way. */
static bool read_tf_graph(struct slice name, struct rp_dump_name *out)
{
    for (size_t i = 0; i < sizeof tf_graphs / sizeof *tf_graphs; i++) {
        size_t n = strlen(tf_graphs[i]);
        struct slice rest = {name.at + n, name.n - n};

        if (!begins_with(name, tf_graphs[i]) || (rest.n && !slice_fits("_#", rest)))
            continue;
        out->id = rest.n ? (int64_t)first_number(rest) : 0;
        out->stage = name.at;
        out->stage_n = n;
        out->number = (uint32_t)i;
        return true;
    }
    return false;
}

static bool read_tf(struct slice file, struct rp_dump_name *out)
{
    enum form form = cut_extension(&file);

    if (form != FORM_TEXT && form != FORM_PROTO)
        return false;
    if (!read_tf_graph(file, out) && !read_tf_cluster(file, out))
        return false;
    out->role = RP_DUMP_PROGRAM;
    out->point = RP_DUMP_AT_NAMED;
    out->sure = true;
    out->proto = form == FORM_PROTO;
    return true;
}

/* "jax_ir0007_jit_f_compile.mlir" */
static bool read_jax(struct slice file, struct rp_dump_name *out)
{
    if (cut_extension(&file) != FORM_TEXT || !slice_fits("jax_ir#_*", file))
        return false;
    file = slice_skip(file, 6);
    out->id = (int64_t)first_number(file);
    file = slice_skip(file, count_digits(file) + 1);
    const char *under = memrchr(file.at, '_', file.n);
    if (!under || under == file.at)
        return false;
    out->module = file.at;
    out->module_n = (size_t)(under - file.at);
    out->stage = under + 1;
    out->stage_n = file.n - out->module_n - 1;
    out->role = RP_DUMP_PROGRAM;
    out->point = RP_DUMP_AT_SOURCE;
    out->sure = true;
    return true;
}

/* ---- torch.compile ---- */

/* ---- any of them ---- */

bool rp_dump_name_read(const char *path, struct rp_dump_name *out)
{
    const char *file = path, *folder = path, *folder_end = path, *fx = strstr(path, RP_DUMP_FX);

    *out = (struct rp_dump_name){.id = -1, .module = "", .stage = "", .point = RP_DUMP_AT_NONE};
    if (fx) {
        /* "1/1:forward.03.aot_joint_graph" */
        struct slice name =
            (struct slice){fx + sizeof RP_DUMP_FX - 1, strlen(fx) + 1 - sizeof RP_DUMP_FX};
        const char *dot = memchr(name.at, '.', name.n);
        if (!dot || !slice_fits("*.#.~", name))
            return false;
        out->module = name.at;
        out->module_n = (size_t)(dot - name.at);
        name = slice_skip(name, out->module_n + 1);
        out->number = first_number(name);
        name = slice_skip(name, count_digits(name) + 1);
        out->stage = name.at;
        out->stage_n = name.n;
        out->role = RP_DUMP_PROGRAM;
        out->point = RP_DUMP_AT_NAMED;
        out->sure = true;
        return true;
    }
    for (const char *s = path; *s; s++)
        if (*s == '/' || *s == '!') {
            folder = file;
            folder_end = s;
            file = s + 1;
        }
    struct slice name = {file, strnlen(file, NAME_MAX + 1)};
    if (name.n > NAME_MAX)
        return false;
    if (read_subfolder((struct slice){folder, (size_t)(folder_end - folder)}, name, out))
        return true;
    *out = (struct rp_dump_name){.id = -1, .module = "", .stage = "", .point = RP_DUMP_AT_NONE};
    return read_xla(name, out) || read_tf(name, out) || read_jax(name, out);
}

const char *rp_dump_role_name(enum rp_dump_role role)
{
    static const char *const names[RP_DUMP_ROLES] = {
        "other",       "programs", "executions", "drawings",       "buffers",    "values",
        "live-ranges", "memory",   "thunks",     "thunk-metadata", "pass-times", "fusion-log",
        "options",     "target",   "autotuning", "llvm",           "ptx",        "objects"};

    return role < RP_DUMP_ROLES ? names[role] : "";
}
