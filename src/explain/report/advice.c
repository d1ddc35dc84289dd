/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and titles of findings, and the choice of advice: of each topic the row that matches in
 * most keys, of several the first; topics in their order, as many as fit on the screen.
 */
#include "explain/report/advice.h"
#include "base/escape.h"

#include "explain/report/report.h"
#include "explain/short_name.h"
#include "facts/host/signs.h"
#include "result/print_units.h"

#include <math.h>
#include <string.h>

const struct rp_found_text rp_found_texts[RP_FOUNDS] = {
#define FOUND_TEXT(name, id, title) {id, title},
    RP_FOUND_MAP(FOUND_TEXT)
#undef FOUND_TEXT
};

enum rp_found rp_found_copies(const char *name)
{
    static const struct {
        const char *part;
        uint8_t found;
    } names[] = {{"Pageable", RP_FOUND_COPIES_PAGEABLE},
                 {"Pinned", RP_FOUND_COPIES_PINNED},
                 {"DtoD", RP_FOUND_COPIES_INSIDE},
                 {"D2D", RP_FOUND_COPIES_INSIDE},
                 {"PtoP", RP_FOUND_COPIES_INSIDE},
                 {"P2P", RP_FOUND_COPIES_INSIDE},
                 {"DeviceToDevice", RP_FOUND_COPIES_INSIDE},
                 {"DtoH", RP_FOUND_COPIES_BACK},
                 {"D2H", RP_FOUND_COPIES_BACK},
                 {"DeviceToHost", RP_FOUND_COPIES_BACK},
                 {"emset", RP_FOUND_COPIES_FILL},
                 {"fill", RP_FOUND_COPIES_FILL},
                 {"Fill", RP_FOUND_COPIES_FILL}};

    /* a pageable target of a copy to the host is still a copy to the host */
    if (name && (strstr(name, "DtoH") || strstr(name, "D2H")))
        return RP_FOUND_COPIES_BACK;
    for (size_t i = 0; name && i < sizeof names / sizeof names[0]; i++)
        if (strstr(name, names[i].part))
            return (enum rp_found)names[i].found;
    return RP_FOUND_COPIES;
}

enum rp_found rp_found_host_work(const char *text)
{
    static const struct {
        const char *word;
        uint8_t found;
    } words[] = {{"torchinductor", RP_FOUND_HOST_COMPILED},
                 {"inductor_cache", RP_FOUND_HOST_COMPILED},
                 {"CompiledFxGraph", RP_FOUND_HOST_COMPILED},
                 {"Torch-Compiled Region", RP_FOUND_HOST_COMPILED},
                 {"aten::", RP_FOUND_HOST_OPERATOR},
                 {"ExecutorState::Process", RP_FOUND_HOST_EXECUTOR},
                 {"PjRt", RP_FOUND_HOST_EXECUTOR},
                 {"Pjit", RP_FOUND_HOST_EXECUTOR},
                 {"XlaComputation", RP_FOUND_HOST_EXECUTOR}};

    if (rp_host_prepares_input(text))
        return RP_FOUND_HOST_INPUT;
    for (size_t i = 0; text && i < sizeof words / sizeof words[0]; i++)
        if (rp_host_has_word(text, words[i].word))
            return (enum rp_found)words[i].found;
    return RP_FOUND_HOST_WORK;
}

enum rp_found rp_found_straggler(const char *cause, const char *evidence)
{
    static const char *const host[] = {"host_work",  "host_stall", "host_unrecorded",
                                       "host",       "host_wait",  "not_launched",
                                       "allocation", "sync_drain"};

    if (!cause)
        return RP_FOUND_STRAGGLER;
    if (!strcmp(cause, "compute"))
        return RP_FOUND_STRAGGLER_COMPUTE;
    if (!strcmp(cause, "data_loader") ||
        (!strcmp(cause, "host_work") && rp_host_prepares_input(evidence)))
        return RP_FOUND_STRAGGLER_INPUT;
    for (size_t i = 0; i < sizeof host / sizeof host[0]; i++)
        if (!strcmp(cause, host[i]))
            return RP_FOUND_STRAGGLER_HOST;
    return RP_FOUND_STRAGGLER;
}

/* ------------------------------------------------------------------ the choice */

/* Adds to *score where the key is given and holds; false where it does not hold. */
static bool set_holds(unsigned set, unsigned value, int *score)
{
    if (!set)
        return true;
    *score += 1;
    return set >> value & 1;
}

static bool flag_holds(uint8_t key, bool value, int *score)
{
    if (key == RP_KEY_ANY)
        return true;
    *score += 1;
    return value == (key == RP_KEY_YES);
}

/* How many keys of a row a program matches; -1: it does not match. */
static int row_score(const struct rp_advice_row *row, const struct rp_workload *w)
{
    int score = 0;
    bool holds =
        set_holds(row->frameworks, w->framework, &score) &&
        set_holds(row->vendors, w->vendor, &score) && set_holds(row->modes, w->mode, &score) &&
        set_holds(row->parallels, w->parallel, &score) &&
        set_holds(row->transports, w->transport, &score) &&
        set_holds(row->serves, w->serves, &score) &&
        flag_holds(row->compiled, w->compiled, &score) &&
        flag_holds(row->graphs, w->graphs, &score) &&
        flag_holds(row->in_graphs, w->in_graphs, &score) &&
        flag_holds(row->plain_update, w->plain_update, &score) &&
        flag_holds(row->with_stack, w->with_stack, &score) &&
        flag_holds(row->ours, w->ours, &score) && flag_holds(row->sampled, w->sampled, &score) &&
        flag_holds(row->no_bf16, w->no_bf16, &score) &&
        flag_holds(row->half_comm, w->half_comm, &score) &&
        flag_holds(row->system, w->system != RP_SYSTEM_NONE, &score) &&
        (!row->collectives || row->collectives >> w->collective & 1);

    return holds ? score + (row->collectives || row->system ? RP_ADVISE_TOPICS : 0) : -1;
}

size_t rp_advice_find(enum rp_found found, const struct rp_workload *workload,
                      struct rp_advice out[RP_ADVICE_MOST])
{
    const struct rp_advice_row *best[RP_ADVISE_TOPICS] = {NULL}, *rows;
    bool partly = found == RP_FOUND_EXPOSED_PARTLY; /* ranks are missing: no numbers */
    int score[RP_ADVISE_TOPICS];
    size_t i, nrows, n = 0;

    rows = rp_advice_rows(&nrows);
    memset(score, -1, sizeof score);
    for (i = 0; i < nrows; i++) {
        const struct rp_advice_row *row = &rows[i];
        int now = row->found == found || (partly && row->found == RP_FOUND_EXPOSED_COMM)
                      ? row_score(row, workload)
                      : -1;

        if (now > score[row->topic]) {
            score[row->topic] = now;
            best[row->topic] = row;
        }
    }
    for (i = 0; i < RP_ADVISE_TOPICS && n < RP_ADVICE_MOST; i++)
        if (best[i] && *best[i]->text)
            out[n++] = (struct rp_advice){best[i]->text, partly ? NULL : best[i]->what_if,
                                          i == RP_ADVISE_LOOK};
    return n;
}

/* ------------------------------------------------------------------ advice of a finding */

#define TRY(member, type, unit, doc, flags) \
    RP_FIELD(struct rp_report_try, member, type, unit, NULL, doc, flags)

static const struct rp_field try_fields[] = {
    TRY(text, STR, NONE, "what to do", 0),
    TRY(what_if, STR, NONE, "the what-if of simulate that predicts it, or null", 0),
    TRY(step_ns, I64, NS, "a step without the profiler, or null", RP_NULLABLE),
    TRY(predicted_ns, I64, NS, "the same with the change, or null", RP_NULLABLE),
    TRY(change_ratio, F64, RATIO, "of the two, or null", 0),
    RP_FIELD_END};
const struct rp_type rp_report_try_type = {"try", sizeof(struct rp_report_try), try_fields, NULL};

void rp_report_advise(struct rp_arena *arena, uint8_t found, const struct rp_workload *workload,
                      struct rp_report_finding *finding)
{
    struct rp_advice advice[RP_ADVICE_MOST];
    size_t i, n = rp_advice_find((enum rp_found)found, workload, advice);

    finding->id = rp_found_texts[found].id;
    finding->title = rp_found_texts[found].title;
    finding->ntries = 0;
    finding->tries = RP_ARENA_NEW(arena, struct rp_report_try, RP_ADVICE_MOST);
    for (i = 0; i < n && finding->tries; i++)
        finding->tries[finding->ntries++] = (struct rp_report_try){.text = advice[i].text,
                                                                   .what_if = advice[i].what_if,
                                                                   .look = advice[i].look,
                                                                   .topic = advice[i].what_if,
                                                                   .step_ns = RP_ABSENT_I64,
                                                                   .predicted_ns = RP_ABSENT_I64,
                                                                   .change_ratio = NAN};
    rp_report_join_hint(arena, finding);
}

void rp_report_join_hint(struct rp_arena *arena, struct rp_report_finding *finding)
{
    finding->hint = finding->ntries ? finding->tries[0].text : "";
    for (size_t i = 1; i < finding->ntries; i++)
        finding->hint = rp_arena_textf(arena, "%s; %s", finding->hint, finding->tries[i].text);
}

/* "torch.compile(...) (simulate: graphs 31.2 ms → 28.0 ms a step, -10.3 %)" */
static const char *try_line(struct rp_arena *arena, const struct rp_report_try *t)
{
    if (!t->what_if)
        return t->text;
    if (isnan(t->change_ratio))
        return rp_arena_textf(arena, "%s ('reprise simulate -w %s' predicts it)", t->text,
                              rp_arena_escaped(arena, RP_IN_SHELL, t->what_if));
    if (t->change_ratio > -0.0005)
        return rp_arena_textf(arena, "%s (simulate: %s alone brings nothing)", t->text, t->what_if);
    return rp_arena_textf(arena, "%s (simulate: %s %s → %s a step, %+.1f %%)", t->text, t->what_if,
                          rp_units_time(arena, t->step_ns), rp_units_time(arena, t->predicted_ns),
                          100 * t->change_ratio);
}

void rp_report_look_tries(struct rp_arena *arena, const struct rp_report_finding *finding,
                          struct rp_report_look *look)
{
    const char **const lines[] = {&look->first, &look->second, &look->third};

    for (size_t i = 0; i < finding->ntries && i < sizeof lines / sizeof lines[0]; i++)
        *lines[i] = try_line(arena, &finding->tries[i]);
}

/* ------------------------------------------------------------------ why a rank is late */

const char *rp_report_late_text(struct rp_arena *arena, const char *cause, const char *evidence)
{
    static const struct {
        const char *cause, *text;
    } rows[] = {{"compute", "it computed longer than the others"},
                {"copy", "it copied longer than the others"},
                {"host_work", "its host ran something else"},
                {"host", "it was idle longer than the others"},
                {"host_wait", "it waited longer than the others"},
                {"host_stall", "a host call took far longer than usual"},
                {"host_unrecorded", "its host ran what was not recorded"},
                {"not_launched", "its host launched more slowly"},
                {"data_loader", "it waited for input data"},
                {"allocation", "its host allocated device memory"},
                {"sync_drain", "its host waited for its device"},
                {"other_rank", "its host waited for other ranks"},
                {"start_up", "it was still starting up"},
                {"profiler", "its profiler was busy"},
                {"start", "its recorded work had begun later than that of the others"}};
    char name[120];

    for (size_t i = 0; cause && i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(cause, rows[i].cause) != 0)
            continue;
        if (!evidence)
            return rp_arena_textf(arena, "; before that %s", rows[i].text);
        rp_short_name(evidence, name, sizeof name);
        return !strcmp(cause, "host_work")
                   ? rp_arena_textf(arena, "; before that it ran %s", name)
                   : rp_arena_textf(arena, "; before that %s (%s)", rows[i].text, name);
    }
    return "";
}

/* ------------------------------------------------------------------ the workload, in words */

#define WORKLOAD(member, type, doc) \
    RP_FIELD(struct rp_report_workload, member, type, NONE, NULL, doc, 0)

static const struct rp_field workload_fields[] = {
    WORKLOAD(framework, STR, "what its user configures: a server, else a framework"),
    WORKLOAD(vendor, STR, "of the device, or none"),
    WORKLOAD(mode, STR, "training, inference, serving or unknown"),
    WORKLOAD(parallel, STR, "how the work is distributed, or none"),
    WORKLOAD(transport, STR, "what carries collectives, or none"),
    WORKLOAD(compiled, BOOL, "by torch.compile or XLA"),
    WORKLOAD(graphs, BOOL, "graphs of device work are launched"),
    RP_FIELD_END};
const struct rp_type rp_report_workload_type = {"workload", sizeof(struct rp_report_workload),
                                                workload_fields, NULL};

const char *rp_report_program_name(struct rp_arena *arena, const struct rp_report_part *part)
{
    uint8_t framework = part->workload.framework;
    const char *system = rp_system_names[part->workload.system];

    if (part->frameworks)
        return part->frameworks;
    if (!part->framework)
        return !system ? "unknown recorder"
               : framework == RP_FRAMEWORK_UNKNOWN || framework == RP_FRAMEWORK_NATIVE
                   ? rp_arena_textf(arena, "recorded by %s", system)
                   : rp_arena_textf(arena, "%s, recorded by %s", rp_framework_names[framework],
                                    system);
    return framework == RP_FRAMEWORK_VLLM || framework == RP_FRAMEWORK_SGLANG ||
                   framework == RP_FRAMEWORK_TENSORRT_LLM
               ? rp_arena_textf(arena, "%s on %s", rp_framework_names[framework], part->framework)
               : part->framework;
}

struct rp_report_workload rp_report_workload_of(const struct rp_workload *w)
{
    return (struct rp_report_workload){.framework = rp_framework_names[w->framework],
                                       .vendor = rp_vendor_names[w->vendor],
                                       .mode = rp_mode_names[w->mode],
                                       .parallel = rp_parallel_names[w->parallel],
                                       .transport = rp_transport_names[w->transport],
                                       .compiled = w->compiled,
                                       .graphs = w->graphs};
}
