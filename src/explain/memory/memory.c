/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `memory` shows the peak of each device, who holds it, and how it came about. The records of all
 * ranks are sorted by their peaks; the screen shows the details of the first.
 */
#include "explain/memory/memory.h"

#include "base/decides.h"
#include "base/order.h"
#include "dataset/question.h"
#include "draw/web.h"
#include "explain/memory/xla.h"
#include "facts/work/recorder.h"
#include "result/part.h"
#include "result/print_units.h"

#include <stdlib.h>
#include <string.h>

extern const struct rp_question_row rp_ask_memory;

/* ------------------------------------------------------------------ the result */

#define SHARE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_memory_share, member, type, unit, title, doc, flags)

static const struct rp_field share_fields[] = {
    SHARE(category, STR, NONE, "category", "what the memory is for", 0),
    SHARE(bytes, I64, BYTES, "at the peak", "bytes at the peak", 0),
    SHARE(share, F64, RATIO, "share", "share of the peak", 0),
    SHARE(buffers, I64, COUNT, "buffers", "how many; 0: not known one by one", 0),
    SHARE(sure, STR, NONE, "sure", "how certain the category is", 0),
    SHARE(basis, STR, NONE, "because", "how it was recognised", RP_WIDE),
    RP_FIELD_END};
static const struct rp_type share_type = {"share", sizeof(struct rp_memory_share), share_fields,
                                          NULL};

#define HOLDER(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_memory_holder, member, type, unit, title, doc, flags)

static const struct rp_field holder_fields[] = {
    HOLDER(bytes, I64, BYTES, "bytes", "bytes at the peak", 0),
    HOLDER(share, F64, RATIO, "share", "share of the peak", 0),
    HOLDER(buffers, I64, COUNT, "buffers", "how many; 0: not known one by one", RP_WIDE),
    HOLDER(category, STR, NONE, "category", "what they are for", 0),
    HOLDER(op, STR, NONE, "operator", "that allocated them", RP_SHORTEN),
    HOLDER(where, STR, NONE, "module or line", "text output only",
           RP_SCREEN | RP_SHORTEN | RP_WHOLE),
    HOLDER(module, STR, NONE, NULL, "classes of the modules around it", 0),
    HOLDER(line, STR, NONE, NULL, "function of the program around it, or its line", 0),
    RP_FIELD_END};
static const struct rp_type holder_type = {"holder", sizeof(struct rp_memory_holder), holder_fields,
                                           NULL};

#define STEP(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_memory_step_row, member, type, unit, title, doc, flags)

static const struct rp_field step_fields[] = {
    STEP(step, I64, NONE, "step", "number of the step", 0),
    STEP(peak_bytes, I64, BYTES, "peak", "largest total in it", 0),
    STEP(begin_bytes, I64, BYTES, "begin", "allocated when it begins", 0),
    STEP(end_bytes, I64, BYTES, "end", "allocated when it ends", 0),
    STEP(growth_bytes, I64, BYTES, "growth", "end - begin", 0),
    STEP(allocations, I64, COUNT, "allocations", "how many", 0),
    STEP(allocated_bytes, I64, BYTES, "allocated", "their sum", 0),
    RP_FIELD_END};
static const struct rp_type step_type = {"step", sizeof(struct rp_memory_step_row), step_fields,
                                         NULL};

#define CHURN(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_memory_churn, member, type, unit, title, doc, flags)

static const struct rp_field churn_fields[] = {
    CHURN(per_step_bytes, F64, BYTES, "a step", "bytes allocated in a step", 0),
    CHURN(allocations_per_step, F64, NONE, "allocations", "allocations in a step", 0),
    CHURN(bytes, I64, BYTES, NULL, "bytes allocated in all", 0),
    CHURN(allocations, I64, COUNT, NULL, "allocations in all", 0),
    CHURN(phase, STR, NONE, "phase", "phase of training", RP_WIDE),
    CHURN(op, STR, NONE, "operator", "that allocates", RP_SHORTEN),
    CHURN(where, STR, NONE, "module or line", "text output only",
          RP_SCREEN | RP_SHORTEN | RP_WHOLE),
    CHURN(module, STR, NONE, NULL, "classes of the modules around it", 0),
    CHURN(line, STR, NONE, NULL, "function of the program around it, or its line", 0),
    RP_FIELD_END};
static const struct rp_type churn_type = {"churn", sizeof(struct rp_memory_churn), churn_fields,
                                          NULL};

#define CALL(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_memory_call, member, type, unit, title, doc, flags)

static const struct rp_field call_fields[] = {
    CALL(name, STR, NONE, "call", "name of the runtime or driver", 0),
    CALL(count, I64, COUNT, "count", "how often", 0),
    CALL(total_ns, I64, NS, "host time", "sum", 0),
    CALL(max_ns, I64, NS, "longest", "the longest", 0),
    CALL(waits, BOOL, NONE, "waits", "whether it waits for the device", 0),
    RP_FIELD_END};
static const struct rp_type call_type = {"call", sizeof(struct rp_memory_call), call_fields, NULL};

#define POINT(member, doc) \
    RP_FIELD(struct rp_memory_point, member, I64, BYTES, NULL, doc, RP_NULLABLE)
#define LAYER(key, i, doc) \
    RP_FIELD_AS(key, struct rp_memory_point, category_bytes[i], I64, BYTES, NULL, doc, 0)

static const struct rp_field point_fields[] = {
    RP_FIELD(struct rp_memory_point, ts_ns, I64, NS, NULL, "since the first event", 0),
    POINT(allocated_bytes, "all of it"),
    POINT(reserved_bytes, "bytes that the allocator held; null: not recorded"),
    LAYER("parameters_bytes", RP_MEMORY_PARAMETERS, "the part of it that is parameters"),
    LAYER("optimizer_bytes", RP_MEMORY_OPTIMIZER, "optimizer state"),
    LAYER("gradients_bytes", RP_MEMORY_GRADIENTS, "gradients"),
    LAYER("activations_bytes", RP_MEMORY_ACTIVATIONS, "activations"),
    LAYER("inputs_bytes", RP_MEMORY_INPUTS, "inputs"),
    LAYER("temporaries_bytes", RP_MEMORY_TEMPORARY, "temporaries"),
    LAYER("before_bytes", RP_MEMORY_BEFORE, "older than the recording"),
    LAYER("unknown_bytes", RP_MEMORY_UNKNOWN, "unknown"),
    RP_FIELD_END};
static const struct rp_type point_type = {"point", sizeof(struct rp_memory_point), point_fields,
                                          NULL};

#define CHECKPOINT(member, type, unit, doc) \
    RP_FIELD(struct rp_memory_checkpoint, member, type, unit, NULL, doc, 0)

static const struct rp_field checkpoint_fields[] = {
    CHECKPOINT(module, STR, NONE, "the repeated module that holds most; null: not known"),
    CHECKPOINT(modules, I64, COUNT, "how many there are"),
    CHECKPOINT(activation_bytes, I64, BYTES, "their activations at the peak"),
    CHECKPOINT(saved_bytes, I64, BYTES, "how much lower the peak would be, at most"),
    CHECKPOINT(peak_bytes, I64, BYTES, "the peak then, at least"),
    RP_FIELD_END};
static const struct rp_type checkpoint_type = {"checkpoint", sizeof(struct rp_memory_checkpoint),
                                               checkpoint_fields, NULL};

#define DEVICE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_memory_device, member, type, unit, title, doc, flags)
#define DEVICE_LIST(member, item, doc) \
    RP_FIELD_LIST(struct rp_memory_device, member, item, NULL, doc, 0)

static const struct rp_field device_fields[] = {
    DEVICE(rank, I64, NONE, "rank", "rank", RP_NULLABLE),
    DEVICE(device, STR, NONE, "device", "the device with this memory", RP_SHORTEN),
    DEVICE(path, STR, NONE, NULL, "file", 0),
    DEVICE(source, STR, NONE, NULL, "profile, snapshot or buffer assignment", 0),
    DEVICE(peak_bytes, I64, BYTES, "peak", "most that was allocated at once", 0),
    DEVICE(peak_text, STR, NONE, "when", "text output only", RP_SCREEN),
    DEVICE(peak_ns, I64, NS, "at", "when, since the first event", RP_NULLABLE | RP_WIDE),
    DEVICE(peak_step, I64, NONE, NULL, "the step with the peak", RP_NULLABLE),
    DEVICE(peak_phase, STR, NONE, NULL, "forward, backward or optimizer", 0),
    DEVICE(reserved_bytes, I64, BYTES, "reserved", "bytes that the allocator held at the peak",
           RP_NULLABLE),
    DEVICE(peak_reserved_bytes, I64, BYTES, NULL, "most that was reserved", RP_NULLABLE),
    DEVICE(slack_bytes, I64, BYTES, NULL, "reserved and not allocated, at the peak", RP_NULLABLE),
    DEVICE(begin_bytes, I64, BYTES, "begin", "allocated when the recording begins",
           RP_WIDE | RP_NULLABLE),
    DEVICE(end_bytes, I64, BYTES, "end", "allocated when it ends", RP_NULLABLE),
    DEVICE(allocations, I64, COUNT, "allocations", "how many", 0),
    DEVICE(frees, I64, COUNT, NULL, "how many", 0),
    DEVICE(allocated_bytes, I64, BYTES, NULL, "sum of all allocations", 0),
    DEVICE(buffers, I64, COUNT, NULL, "that are known one by one at the peak", 0),
    DEVICE(holder_count, I64, COUNT, NULL, "holders before the limit", 0),
    DEVICE(step_count, I64, COUNT, NULL, "steps with allocations", 0),
    DEVICE(churn_steps, I64, COUNT, NULL, "steps that the rates of churn are divided by", 0),
    DEVICE(growth_bytes, I64, BYTES, NULL,
           "least growth of the steps after the first, 0 if one does not grow; null: fewer than 3 "
           "steps",
           RP_NULLABLE),
    DEVICE(segments, I64, COUNT, NULL, "segments of the allocator at the end; snapshots only",
           RP_NULLABLE),
    DEVICE(free_bytes, I64, BYTES, NULL, "free in them", RP_NULLABLE),
    DEVICE(largest_free_bytes, I64, BYTES, NULL, "largest free block", RP_NULLABLE),
    DEVICE(oom_count, I64, COUNT, NULL, "requests that failed; snapshots only", 0),
    DEVICE(memory_bytes, I64, BYTES, NULL, "memory of the device, where recorded", RP_NULLABLE),
    RP_FIELD_RECORD(struct rp_memory_device, checkpoint, &checkpoint_type, NULL,
                    "what checkpointing could save", 0),
    DEVICE_LIST(categories, &share_type, "who holds the peak; they add up to it"),
    DEVICE_LIST(holders, &holder_type, "the same by operator, module and line"),
    DEVICE_LIST(steps, &step_type, "by step"),
    DEVICE_LIST(churn, &churn_type, "who allocates most"),
    DEVICE_LIST(calls, &call_type, "calls that get memory from the driver"),
    DEVICE_LIST(timeline, &point_type, "at most 240 equal slices, each at its largest total"),
    DEVICE_LIST(findings, &rp_type_string, "about this device"),
    RP_FIELD_END};
const struct rp_type rp_memory_device_type = {"device", sizeof(struct rp_memory_device),
                                              device_fields, NULL};

#define ROOT_LIST(member, item, title, doc, flags) \
    RP_FIELD_LIST(struct rp_memory_root, member, item, title, doc, flags)

static const struct rp_field root_fields[] = {
    RP_FIELD(struct rp_memory_root, summary, STR, NONE, "memory", "the largest peak", 0),
    ROOT_LIST(findings, &rp_type_string, "findings", "text output only", RP_SCREEN),
    ROOT_LIST(devices, &rp_memory_device_type, "devices", "of all ranks, the largest peak first",
              0),
    ROOT_LIST(plot, &rp_type_string, "timeline", "text output only", RP_SCREEN | RP_VERBATIM),
    ROOT_LIST(categories, &share_type, "what holds the peak", "text output only", RP_SCREEN),
    ROOT_LIST(holders, &holder_type, "who holds it", "text output only", RP_SCREEN),
    ROOT_LIST(steps, &step_type, "steps", "text output only", RP_SCREEN),
    ROOT_LIST(churn, &churn_type, "who allocates most", "text output only", RP_SCREEN),
    ROOT_LIST(calls, &call_type, "memory from the driver", "text output only", RP_SCREEN),
    ROOT_LIST(notes, &rp_type_string, "notes", "about the recording", 0),
    RP_FIELD_END};
static const struct rp_type memory_type = {"memory", sizeof(struct rp_memory_root), root_fields,
                                           "devices"};

/* ------------------------------------------------------------------ one rank */

struct memory_part {
    size_t ndevices;
    struct rp_memory_device *devices;
    struct rp_recorder recorder;
    bool lacks_stacks, lacks_addresses, lacks_totals;
};

static const struct rp_field part_fields[] = {
    RP_PART_LIST(struct memory_part, devices, &rp_memory_device_type),
    RP_PART_PLAIN(struct memory_part, recorder),
    RP_PART_PLAIN(struct memory_part, lacks_stacks),
    RP_PART_PLAIN(struct memory_part, lacks_addresses),
    RP_PART_PLAIN(struct memory_part, lacks_totals),
    RP_PART_END};
const struct rp_type rp_memory_part_type = {"memory_part", sizeof(struct memory_part), part_fields,
                                            NULL};

const struct rp_memory_device *rp_memory_devices(const struct rp_rank_part *part, size_t *n)
{
    const struct memory_part *p = part->data;

    *n = p->ndevices;
    return p->devices;
}

static enum rp_code describe_all(const struct rp_memory_logs *logs, const struct rp_scope *scope,
                                 size_t limit, struct rp_rank_part *part, struct rp_err *err)
{
    struct memory_part *out = part->data;

    out->devices = RP_ARENA_NEW(&part->arena, struct rp_memory_device, logs->devices.n + 1);
    RP_TRY(rp_err_need(out->devices, err, "describing memory"));
    for (size_t i = 0; i < logs->devices.n; i++) {
        const struct rp_memory_log *log = &logs->devices.at[i];

        out->lacks_addresses = out->lacks_addresses || (log->entries.n && !log->has_addr);
        out->lacks_totals = out->lacks_totals || (log->entries.n && !log->has_total);
        if (log->entries.n || log->segments)
            RP_TRY(rp_memory_describe(logs, i, scope, limit, &part->arena,
                                      &out->devices[out->ndevices++], err));
    }
    out->lacks_stacks = out->ndevices && !logs->has_stacks;
    return rp_recorder_find(logs->trace, &out->recorder, err);
}

enum rp_code rp_memory_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                            size_t limit, struct rp_rank_part *part, struct rp_err *err)
{
    RP_SCOPED(rp_memory_logs_release) struct rp_memory_logs logs = {0};

    RP_TRY(rp_memory_logs_init(&logs, loaded->trace, err));
    RP_TRY(rp_memory_own(&logs, err));
    RP_TRY(rp_memory_classify(&logs, err));
    return describe_all(&logs, scope, limit, part, err);
}

static enum rp_code memory_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                const struct rp_settings *settings, struct rp_rank_part *part,
                                struct rp_err *err)
{
    return rp_memory_rank(loaded, scope, rp_settings_limit(settings, "limit"), part, err);
}

/* ------------------------------------------------------------------ all ranks */

static bool is_host(const struct rp_memory_device *d)
{
    return !strcmp(d->device, "CPU");
}

RP_ORDER(by_peak, struct rp_memory_device, RP_COMPARE(is_host(a), is_host(b)), RP_DOWN(peak_bytes),
         RP_UP(rank), strcmp(a->device, b->device))

static bool device_wanted(const struct rp_memory_device *d, const char *wanted)
{
    if (!wanted)
        return true;
    if (!strcasecmp(wanted, "cpu"))
        return is_host(d);
    return !strcasecmp(d->device, wanted) ||
           (!strncmp(d->device, "GPU ", 4) && !strcmp(d->device + 4, wanted));
}

static enum rp_code gather_devices(const struct rp_ranks *ranks, struct rp_memory_root *root,
                                   const char *wanted, struct rp_arena *arena, struct rp_err *err)
{
    size_t r, i, n = 0, all = 0;

    for (r = 0; r < ranks->n; r++)
        all += ((const struct memory_part *)ranks->parts[r].data)->ndevices;
    root->devices = RP_ARENA_NEW(arena, struct rp_memory_device, all + 1);
    RP_TRY(rp_err_need(root->devices, err, "joining ranks"));
    for (r = 0; r < ranks->n; r++) {
        const struct memory_part *part = ranks->parts[r].data;

        for (i = 0; i < part->ndevices; i++) {
            if (!device_wanted(&part->devices[i], wanted))
                continue;
            root->devices[n] = part->devices[i];
            root->devices[n].rank = ranks->parts[r].number;
            root->devices[n++].path = ranks->parts[r].path;
        }
    }
    root->ndevices = n;
    rp_sort(root->devices, n, sizeof *root->devices, by_peak);
    if (!n && all)
        return rp_err_set(err, RP_USAGE,
                          "no memory of device '%s' was recorded: write the number of a GPU, or "
                          "'cpu'",
                          wanted);
    return RP_OK;
}

/* How to record memory, if there is nothing about it. */
static const char *nothing_text(const struct rp_recorder *recorder)
{
    if (recorder->framework == RP_FRAMEWORK_JAX)
        return "memory of JAX is read from dumps of XLA: XLA_FLAGS=--xla_dump_to=DIR";
    if (recorder->ours && rp_recorder_option(recorder, RP_RECORDS_MEMORY))
        return "record memory: 'reprise record --set frameworks.memory=on' keeps PyTorch's "
               "allocations, as a file for 'reprise memory'";
    if (rp_recorder_option(recorder, RP_RECORDS_MEMORY) &&
        recorder->framework == RP_FRAMEWORK_PYTORCH)
        return "record memory: torch.profiler.profile(profile_memory=True, with_stack=True), or "
               "torch.cuda.memory._record_memory_history() and _dump_snapshot()";
    return "memory is read from PyTorch's profiles and snapshots and from dumps of XLA "
           "(--xla_dump_to)";
}

/* Notes why there is nothing, or what is missing. */
static void add_notes(const struct rp_ranks *ranks, struct rp_memory_root *root,
                      struct rp_arena *arena)
{
    bool lacks_stacks = false, lacks_addresses = false, lacks_totals = false;
    const struct rp_recorder *recorder = NULL;

    for (size_t r = 0; r < ranks->n; r++) {
        const struct memory_part *part = ranks->parts[r].data;

        lacks_stacks = lacks_stacks || part->lacks_stacks;
        lacks_addresses = lacks_addresses || part->lacks_addresses;
        lacks_totals = lacks_totals || part->lacks_totals;
        recorder = recorder ? recorder : &part->recorder;
    }
    if (!root->ndevices && recorder)
        RP_NOTE(root, arena, nothing_text(recorder));
    else if (lacks_stacks)
        RP_NOTE(root, arena,
                "no Python frames were recorded: with_stack=True names lines and modules");
    if (lacks_totals)
        RP_NOTE(
            root, arena,
            "totals were not recorded: what was allocated before the recording is not in the peak");
    if (lacks_addresses)
        RP_NOTE(root, arena,
                "addresses were not recorded: a free is taken to be of the last "
                "allocation of the same size");
    if (root->ndevices && is_host(&root->devices[0]))
        RP_NOTE(root, arena, "only the host's memory was recorded");
}

#define CHURN_ROWS 5
RP_LIMIT(CHURN_ROWS, "rows on the screen", "those with most bytes; --json has them all");

static const char *summary_of(const struct rp_memory_root *root, size_t nranks,
                              struct rp_arena *arena)
{
    const struct rp_memory_device *d = root->devices;
    const char *reserved = "", *where;

    if (!root->ndevices)
        return "no memory events were recorded";
    if (d->reserved_bytes != RP_ABSENT_I64)
        reserved =
            rp_arena_textf(arena, " allocated, %s reserved",
                           rp_units_text(arena, (double)d->peak_reserved_bytes, RP_UNIT_BYTES));
    where = d->rank == RP_ABSENT_I64 || nranks < 2
                ? d->device
                : rp_arena_textf(arena, "rank %lld, %s", (long long)d->rank, d->device);
    return rp_arena_textf(arena, "peak %s%s (%s%s%s)",
                          rp_units_text(arena, (double)d->peak_bytes, RP_UNIT_BYTES), reserved,
                          where, *d->peak_text ? ", " : "", d->peak_text);
}

static enum rp_code save_svg(const struct rp_memory_root *root, const char *path,
                             struct rp_arena *arena, struct rp_err *err)
{
    struct rp_out *to;

    if (!path)
        return RP_OK;
    if (!root->ndevices || !root->devices[0].ntimeline)
        return rp_err_set(err, RP_UNSUPPORTED, "there is no timeline to draw into '%s'", path);
    RP_TRY(rp_out_open(path, &to, err));
    rp_memory_draw(&root->devices[0], arena, to);
    return rp_out_close(to, err);
}

static enum rp_code finish_root(struct rp_memory_root *root, size_t nranks,
                                const struct rp_settings *settings, struct rp_arena *arena,
                                struct rp_err *err)
{
    root->summary = summary_of(root, nranks, arena);
    if (root->ndevices) {
        /* The screen shows the details of one device. */
        const struct rp_memory_device *d = &root->devices[0];
        root->findings = d->findings;
        root->nfindings = d->nfindings;
        root->categories = d->categories;
        root->ncategories = d->ncategories;
        root->holders = d->holders;
        root->nholders = d->nholders;
        root->steps = d->steps;
        root->nsteps = d->nsteps;
        root->churn = d->churn;
        root->nchurn = d->nchurn < CHURN_ROWS ? d->nchurn : CHURN_ROWS;
        root->calls = d->calls;
        root->ncalls = d->ncalls;
        root->plot = rp_memory_plot(d, arena, &root->nplot);
    }
    RP_TRY(save_svg(root, rp_settings_text(settings, "svg"), arena, err));
    return rp_arena_check(arena, "describing memory", err);
}

static enum rp_code memory_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                struct rp_result *result, struct rp_err *err)
{
    struct rp_memory_root *root = result->root;

    RP_TRY(gather_devices(ranks, root, rp_settings_text(settings, "device"), &result->arena, err));
    add_notes(ranks, root, &result->arena);
    return finish_root(root, ranks->n, settings, &result->arena, err);
}

/* ------------------------------------------------------------------ the question */

static enum rp_code memory_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    struct rp_memory_root *root = result->root;
    bool found;

    RP_TRY(rp_memory_xla(dataset, rp_settings_text(settings, "module"),
                         rp_settings_limit(settings, "limit"), &result->arena, &root->devices,
                         &root->ndevices, &found, err));
    if (!found)
        return rp_ask_ranks(ctx, dataset, settings, &rp_ask_memory.ranks, result, err);
    qsort(root->devices, root->ndevices, sizeof *root->devices, by_peak);
    return finish_root(root, 1, settings, &result->arena, err);
}

struct memory_picture {
    const struct rp_memory_device *device;
    struct rp_arena *arena;
};

static void draw_device(void *user, struct rp_out *to)
{
    const struct memory_picture *p = user;

    rp_memory_draw(p->device, p->arena, to);
}

/* The page also shows what the answer is based on. */
static enum rp_code memory_write(const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    const struct rp_memory_root *root = result->root;
    const char *html = rp_settings_text(settings, "html");
    struct memory_picture picture = {root->devices, &result->arena};
    struct rp_web_answer page = {
        .result = result, .name = "memory", .left_out = "plot", .user = &picture};

    if (root->ndevices && root->devices[0].ntimeline)
        page.draw = draw_device;
    return html ? rp_web_write_answer(&page, html, err) : RP_OK;
}

static const struct rp_option memory_options[] = {
    {"limit", 'n', RP_OPT_COUNT, "N", "10", "at most N holders and lines; 0: all", 0},
    {"device", 'd', RP_OPT_TEXT, "N|cpu", NULL, "only this GPU, or the host's memory", 0},
    {"module", 'm', RP_OPT_TEXT, "NAME", NULL, "of an XLA dump: only modules with this name or id",
     0},
    {"svg", 0, RP_OPT_PATH, "FILE", NULL, "also draw the timeline of the largest peak", 0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a page for a browser: the timeline and all tables", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_memory = {
    .question = {.name = "memory",
                 .group = "traces",
                 .summary = "the peak of device memory, and what holds it",
                 .details =
                     "Reads PyTorch profiles with memory events (profile_memory=True), snapshots "
                     "of its allocator (pickles are read as data: nothing in them is run), and "
                     "buffer assignments in dumps of XLA. Shows the peak of each device and rank, "
                     "what holds it (parameters, gradients, optimizer state, activations, inputs, "
                     "temporaries) with operator, module and line, the timeline, growth over the "
                     "steps, and what allocation costs.",
                 .examples = "reprise memory trace.json.gz\tthe largest peak and what holds it\n"
                             "reprise memory snapshot.pickle --svg memory.svg\talso draws it\n"
                             "reprise memory run/ --json\tall ranks and devices\n"
                             "reprise memory xla_dump/\tbuffers that XLA assigned\n",
                 .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS,
                 .options = memory_options,
                 .type = &memory_type},
    .ranks = {.part = &rp_memory_part_type,
              .memory = true,
              .rank = memory_rank,
              .join = memory_join},
    .run = memory_run,
    .write = memory_write};
