/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of a report. Its numbers and sentences are those of the answer, written by the
 * descriptions of its fields; the script only lays them out. The page is written in one pass.
 */
#include "base/decides.h"
#include "explain/report/report.h"
#include "explain/report/view.h"

#include "draw/web.h"
#include "io/escaped.h"
#include "result/walk.h"

#include <inttypes.h>
#include <string.h>

#define MOST_STEPS   2000
#define MOST_MARKS   20000
#define MOST_REMARKS 100
RP_LIMIT(MOST_STEPS, "steps, of the first rank", "the others are marks in their lanes");
RP_LIMIT(MOST_MARKS, "marks, of all ranks", "later steps have no marks");
RP_LIMIT(MOST_REMARKS, "sentences", "the lines count all of them");

static const char *const state_names[RP_LANE_STATES] = {
#define STATE_NAME(name, text, colour, doc) text,
    RP_LANE_MAP(STATE_NAME)
#undef STATE_NAME
};
/* The causes in lanes: those of gaps, unknown, those of pauses. */
static const char *const cause_names[RP_LANE_PAUSES + RP_PAUSES] = {
#define CAUSE_NAME(name, text, doc) text,
    RP_GAP_CAUSE_MAP(CAUSE_NAME) NULL, RP_PAUSE_MAP(CAUSE_NAME)
#undef CAUSE_NAME
};
static const char *const cause_docs[RP_LANE_PAUSES + RP_PAUSES] = {
#define CAUSE_DOC(name, text, doc) doc,
    RP_GAP_CAUSE_MAP(CAUSE_DOC) NULL, RP_PAUSE_MAP(CAUSE_DOC)
#undef CAUSE_DOC
};
static const char *const state_docs[RP_LANE_STATES] = {
#define STATE_DOC(name, text, colour, doc) doc,
    RP_LANE_MAP(STATE_DOC)
#undef STATE_DOC
};

/* Selects what the screen shows, and the lists of findings and steps, which it shows in another
   form. */
static bool page_wants(const struct rp_field *f)
{
    static const char *const more[] = {"findings", "steps",   "workload",
                                       "step_ns",  "span_ns", "needed_ns"};

    if (f->key && !strcmp(f->key, "look"))
        return false;
    for (size_t i = 0; f->key && i < sizeof more / sizeof *more; i++)
        if (!strcmp(f->key, more[i]))
            return true;
    return f->title != NULL;
}

static bool top_wants(const struct rp_field *f)
{
    return f->title != NULL;
}

static bool roof_wants(const struct rp_field *f)
{
    static const char *const more[] = {
        "device",           "peaks",      "matrix_type", "matrix_flops_per_s", "memory_bytes_per_s",
        "achievable_share", "modelled_ns"};

    for (size_t i = 0; f->key && i < sizeof more / sizeof *more; i++)
        if (!strcmp(f->key, more[i]))
            return true;
    return f->title != NULL;
}

static void put_lanes(struct rp_out *to, const struct rp_report_view *view)
{
    rp_out_printf(to, "\"span_ns\":%" PRId64 ",\"aligned\":%s,\"on_host\":%s,\"left_out\":%zu,\n",
                  view->span_ns, view->aligned ? "true" : "false", view->on_host ? "true" : "false",
                  view->left_out);
    rp_out_text(to, "\"busy\":");
    rp_out_escaped(to, RP_IN_SCRIPT, view->busy);
    rp_out_text(to, ",\"rest\":");
    rp_out_escaped(to, RP_IN_SCRIPT, view->rest);
    rp_out_text(to, ",\n");
    rp_out_text(to, "\"lanes\":[");
    for (size_t i = 0; i < view->nlanes; i++) {
        const struct rp_view_lane *lane = &view->lanes[i];

        rp_out_text(to, i ? ",\n[" : "[");
        rp_out_escaped(to, RP_IN_SCRIPT, lane->name);
        rp_out_printf(to, ",%" PRId64 ",%" PRId64 ",%d,", lane->rank, lane->at_ns, lane->is_main);

        /* A piece is its state and, if idle, cause in one number; then its time, or the time of
           each state if it is mixed. */
        struct rp_web_bytes bytes;
        rp_web_bytes_begin(&bytes, to);
        for (size_t k = 0; k < lane->npieces; k++) {
            const struct rp_lane_piece *p = &lane->pieces[k];

            rp_web_bytes_number(&bytes, (uint64_t)p->state | (uint64_t)p->cause << 3);
            if (p->state != RP_LANE_MIXED)
                rp_web_bytes_number(&bytes, (uint64_t)p->ns[p->state]);
            for (int s = 0; p->state == RP_LANE_MIXED && s < RP_LANE_STATES; s++)
                rp_web_bytes_number(&bytes, (uint64_t)p->ns[s]);
        }
        rp_web_bytes_end(&bytes);

        rp_out_char(to, ']');
    }
    rp_out_text(to, "],\n");
}

/* Hosts with their ranks, and what they have to do with each other: [first, second, …]. */
static void put_hosts(struct rp_out *to, const struct rp_report_root *root)
{
    const struct rp_report_view *view = root->view;
    size_t n = view->nhosts, shown = 0;

    rp_out_text(to, "\"hosts\":[");
    for (size_t h = 0; h < n; h++) {
        const char *comma = "";

        rp_out_text(to, h ? ",[" : "[");
        rp_out_escaped(to, RP_IN_SCRIPT, view->hosts[h]);
        rp_out_text(to, ",[");
        for (size_t r = 0; r < root->nranks; r++)
            if (view->host_of[r] == h) {
                rp_out_printf(to, "%s%" PRId64, comma, root->ranks[r].rank);
                comma = ",";
            }
        rp_out_text(to, "]]");
    }
    rp_out_text(to, "],\n\"pairs\":[");
    for (size_t i = 0; i < n * n; i++) {
        const struct rp_view_pair *p = &view->pairs[i];

        if (p->wait_ns || p->count)
            rp_out_printf(to, "%s[%zu,%zu,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]",
                          shown++ ? "," : "", i / n, i % n, p->wait_ns, p->count, p->size_bytes,
                          p->transfer_ns);
    }
    rp_out_text(to, "],\n");
}

static void put_data(struct rp_out *to, void *user)
{
    const struct rp_result *result = user;
    const struct rp_report_root *root = result->root;
    const struct rp_report_view *view = root->view;
    struct rp_report_root shown = *root;

    rp_out_text(to, "{");

    /* Put what the answer is based on: the lines of the screen, and a sentence about each. */
    const struct rp_trust *trust = &result->trust;
    rp_web_put_texts(to, "incomplete", trust->incomplete, trust->nincomplete);
    rp_web_put_texts(to, "worth_knowing", trust->notes, trust->nnotes);
    rp_out_text(to, "\"remarks\":[");
    for (size_t i = 0; i < trust->nremarks && i < MOST_REMARKS; i++) {
        rp_out_text(to, i ? "," : "");
        rp_out_escaped(to, RP_IN_SCRIPT, trust->remarks[i].text);
    }
    rp_out_text(to, "],\n");

    rp_web_put_texts(to, "states", state_names, RP_LANE_STATES);
    rp_web_put_texts(to, "state_docs", state_docs, RP_LANE_STATES);
    rp_web_put_texts(to, "causes", cause_names, RP_LANE_PAUSES + RP_PAUSES);
    rp_web_put_texts(to, "cause_docs", cause_docs, RP_LANE_PAUSES + RP_PAUSES);
    put_lanes(to, view);

    /* Where the steps of each rank begin: [rank, [time, …]]. */
    rp_out_text(to, "\"marks\":[");
    for (size_t i = 0; i < root->nsteps && i < MOST_MARKS; i++) {
        bool next = !i || root->steps[i].rank != root->steps[i - 1].rank;

        if (next)
            rp_out_printf(to, "%s[%" PRId64 ",[", i ? "]],\n" : "", root->steps[i].rank);
        rp_out_printf(to, "%s%" PRId64, next ? "" : ",", root->view->step_at_ns[i]);
    }
    rp_out_text(to, root->nsteps ? "]]],\n" : "],\n");

    put_hosts(to, root);
    rp_out_text(to, "\"tops\":[");
    for (size_t k = 0; k < RP_VIEW_TOPS; k++) {
        rp_out_text(to, k ? ",\n[" : "[");
        rp_out_escaped(to, RP_IN_SCRIPT, view->tops[k].by);
        rp_out_char(to, ',');
        rp_out_escaped(to, RP_IN_SCRIPT, view->tops[k].title);
        rp_out_char(to, ',');
        rp_web_record(to, &rp_top_type, view->tops[k].root, top_wants);
        rp_out_char(to, ']');
    }
    rp_out_text(to, "],\n");
    rp_out_text(to, "\"step_text\":");
    rp_out_escaped(to, RP_IN_SCRIPT, view->step_text);
    rp_out_text(to, ",\"step_page\":");
    rp_out_escaped(to, RP_IN_SCRIPT, view->step_page);
    rp_out_text(to, ",\n\"roof\":");
    rp_web_record(to, &rp_roof_type, view->roof, roof_wants);
    rp_out_text(to, ",\n");
    shown.nsteps = 0; /* the others are marks in their lanes */
    while (shown.nsteps < root->nsteps && shown.nsteps < MOST_STEPS &&
           root->steps[shown.nsteps].rank == root->steps[0].rank)
        shown.nsteps++;
    rp_out_text(to, "\"answer\":");
    rp_web_record(to, result->type, &shown, page_wants);
    rp_out_text(to, "}\n");
}

/* Writes the file of one rank, or the folder of several: "gpt.json.gz", "ddp". */
static void put_title(struct rp_out *to, void *user)
{
    const struct rp_report_root *root = ((const struct rp_result *)user)->root;
    const char *path = root->nranks ? root->ranks[0].path : "";
    size_t end = strlen(path), begin;
    char name[256];

    for (int up = root->nranks > 1; up >= 0; up--) {
        for (begin = end; begin > 0 && path[begin - 1] != '/'; begin--)
            ;
        if (up && begin > 1)
            end = begin - 1;
    }
    end = end - begin < sizeof name ? end : begin + sizeof name - 1;
    memcpy(name, path + begin, end - begin);
    name[end - begin] = '\0';
    rp_out_escaped(to, RP_IN_MARKUP, name);
}

enum rp_code rp_report_write_page(const struct rp_result *result, const char *path,
                                  struct rp_err *err)
{
    struct rp_web_page page = {rp_web_report_html, rp_web_report_css, rp_web_report_js,
                               put_data,           put_title,         (void *)(uintptr_t)result};
    struct rp_out *to;

    RP_TRY(rp_out_open(path, &to, err));
    return rp_out_end(to, rp_web_put_page(to, &page, err), err);
}
