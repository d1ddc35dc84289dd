/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First uses of shapes occur again and again: a library makes a plan, or tries kernels, or a
 * compiler runs, for each new length of the input. Shapes need not be recorded, because the kernels
 * that an operator launches in a step stand for its shape. The finding is made if most first uses
 * of an operator are far longer than its later ones, in steps until the end.
 */
#include "explain/findings/finding.h"

#include "base/filled.h"
#include "base/hash.h"
#include "base/order.h"
#include "facts/host/calls.h"
#include "facts/times/intervals.h"
#include "facts/torch_names.h"
#include "facts/work/attribution.h"
#include "facts/work/tokens.h"

enum { ATTENTION, CONVOLUTION, OTHER };

#define LONG_SHARE 0.5
RP_DECISION(LONG_SHARE, "of the first uses of an operator",
            "where fewer are long, chance or something else made them so",
            "explain/new_shapes_come_again");
#define PLAN_RATIO 5
RP_DECISION(PLAN_RATIO, "medians of later uses",
            "a library that is known to plan takes so much longer where it does: heuristics of "
            "cuDNN take milliseconds, a use tenths of one",
            "explain/a_library_that_plans_needs_less_proof");
#define PLAN_TIMES 10
RP_DECISION(PLAN_TIMES, "times as often as later ones",
            "first uses of such a library are long, however few: chance lengthens both alike",
            "explain/a_library_that_plans_needs_less_proof");

#define SHOWN 2
RP_LIMIT(SHOWN, "operators", "the others are in the cost; 'reprise stalls' lists their calls");

#define KEPT(M, s)                                                         \
    M(s, PLAIN, int64_t, steps)  /* judged */                              \
    M(s, PLAIN, int64_t, kinds)  /* different uses, by what they launch */ \
    M(s, PLAIN, int64_t, struck) /* those of them with a long first use */ \
    M(s, ARRAY, int64_t, cause_ns, RP_GAP_CAUSES)                          \
    M(s, PLAIN, int64_t, nnames)                                           \
    M(s, TEXTS, names, SHOWN)                                              \
    M(s, ARRAY, int64_t, shapes, SHOWN)                                    \
    M(s, ARRAY, int64_t, first_ns, SHOWN)                                  \
    M(s, ARRAY, int64_t, later_ns, SHOWN)
RP_PART_STRUCT(kept, KEPT);
_Static_assert(SHOWN <= RP_WHERE_NAMES, "all that are shown are in `where`");
RP_PART_TYPE(rp_kept_new_shapes, struct kept, KEPT);

/* An operator that launches, in a judged step. */
struct use {
    rp_event op;
    rp_str name;
    uint32_t step;
    uint64_t launches;
    int64_t ns;
    bool first;
};

/* A name, whose uses follow each other. */
struct user {
    rp_str name;
    size_t first, end;
    bool plans; /* its library is known to */
    int64_t shapes, longs, later_longs, long_ns, later_ns;
};

struct shapes_ctx {
    const struct rp_finding_rank *rank;
    struct rp_work_tokens tokens;
    struct rp_map by_op, seen;
    RP_VEC(struct use) uses;
    RP_VEC(uint64_t) steps; /* by step: hash of what it launches, in any order */
    RP_VEC(struct user) users;
    RP_VEC(int64_t) later;
    rp_interval_vec longs;
};

RP_ORDER(by_op_time, struct use, RP_UP(name), RP_UP(op))
RP_ORDER(by_long_time, struct user, RP_DOWN(long_ns), RP_UP(name))

/* ------------------------------------------------------------------ uses */

static size_t step_at(const struct rp_trace *t, int64_t ns)
{
    size_t i;

    RP_LOWER_BOUND(i, t->nsteps, t->steps[i].begin_ns <= ns);
    return i ? i - 1 : SIZE_MAX;
}

static enum rp_code list_uses(struct shapes_ctx *c, struct rp_err *err)
{
    const struct rp_trace *t = c->rank->trace;

    RP_TRY(rp_vec_zeros(&c->steps, t->nsteps, err));
    for (size_t i = 0; i < c->rank->work->items.n; i++) {
        const struct rp_work_item *x = &c->rank->work->items.at[i];
        rp_event op =
            x->launch == RP_NONE ? RP_NONE : rp_event_around(t, x->launch, RP_KIND_CPU_OP);
        size_t step = op == RP_NONE ? SIZE_MAX : step_at(t, t->ev.ts_ns[x->launch]);
        uint32_t at;

        if (step == SIZE_MAX || t->steps[step].flags & RP_STEP_NOT_JUDGED)
            continue;
        uint64_t token = rp_work_token(&c->tokens, x, op);
        c->steps.at[step] += rp_hash_u64(token);
        RP_TRY(rp_map_intern(&c->by_op, op, (uint32_t)c->uses.n, &at, err));
        if (at == c->uses.n)
            RP_TRY(rp_vec_push(&c->uses,
                               ((struct use){.op = op,
                                             .name = t->ev.name[op],
                                             .step = (uint32_t)step,
                                             .ns = t->ev.dur_ns[op]}),
                               err));
        c->uses.at[at].launches = rp_hash_join(c->uses.at[at].launches, token);
    }
    rp_sort(c->uses.at, c->uses.n, sizeof *c->uses.at, by_op_time);
    return RP_OK;
}

/* Events of one thread are in the order of time, and nearly every operator runs on one thread. */
static enum rp_code find_first(struct shapes_ctx *c, struct rp_err *err)
{
    for (size_t i = 0; i < c->uses.n; i++) {
        struct use *u = &c->uses.at[i];
        uint64_t key = rp_hash_join(rp_hash_join(u->launches, u->name), c->steps.at[u->step]);

        u->first = rp_map_get(&c->seen, key) == RP_NONE;
        if (u->first)
            RP_TRY(rp_map_put(&c->seen, key, 1, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ users */

static bool takes_long(const struct use *x, const struct user *u)
{
    return x->ns >= rp_stall_usual.floor_ns &&
           x->ns / (u->plans ? PLAN_RATIO : rp_stall_usual.ratio) >= u->later_ns;
}

static bool is_long(const struct use *x, const struct user *u)
{
    return x->first && takes_long(x, u);
}

/* Whether first uses, and not chance, take long. */
static bool plans_anew(const struct user *u)
{
    int64_t later = (int64_t)(u->end - u->first) - u->shapes;

    if (!u->longs || (double)u->longs >= LONG_SHARE * (double)u->shapes)
        return u->longs;
    return u->plans && later &&
           (double)u->longs / (double)u->shapes >=
               PLAN_TIMES * (double)u->later_longs / (double)later;
}

/* Later uses tell how long it usually takes; if there are none, its library must be known for
   making plans. */
static enum rp_code measure_user(struct shapes_ctx *c, struct user *u, struct rp_err *err)
{
    c->later.n = 0;
    for (size_t i = u->first; i < u->end; i++)
        if (!c->uses.at[i].first)
            RP_TRY(rp_vec_push(&c->later, c->uses.at[i].ns, err));
    rp_ns_sort(c->later.at, c->later.n);

    rp_str name = u->name;
    const struct rp_trace *t = c->rank->trace;
    u->plans = rp_torch_is(rp_trace_str(t, name), rp_trace_str_len(t, name), RP_TORCH_PLANS);
    u->later_ns = c->later.n ? rp_ns_median(c->later.at, c->later.n)
                  : u->plans ? 0
                             : INT64_MAX / rp_stall_usual.ratio;
    for (size_t i = u->first; i < u->end; i++) {
        u->shapes += c->uses.at[i].first;
        u->later_longs += !c->uses.at[i].first && takes_long(&c->uses.at[i], u);
        u->longs += is_long(&c->uses.at[i], u);
        rp_ns_add(&u->long_ns, is_long(&c->uses.at[i], u) ? c->uses.at[i].ns : 0);
    }
    return RP_OK;
}

/* Counts the steps in which it happens; true if it still does in the second half. */
static bool comes_again(struct shapes_ctx *c, const struct user *u, uint8_t *struck)
{
    uint32_t middle = c->rank->trace->nsteps / 2;
    size_t n = 0;
    bool late = false;

    for (size_t i = u->first; i < u->end; i++)
        if (is_long(&c->uses.at[i], u)) {
            n += !(struck[c->uses.at[i].step] & 2);
            struck[c->uses.at[i].step] |= 2;
            late |= c->uses.at[i].step >= middle;
        }
    for (size_t i = 0; i < c->rank->trace->nsteps; i++)
        struck[i] = (uint8_t)((struck[i] & 1) | (struck[i] & 2 && late && n >= RP_STEPS_COMPARED));
    return late && n >= RP_STEPS_COMPARED;
}

static enum rp_code keep_user(struct shapes_ctx *c, const struct user *u, struct kept *out,
                              struct rp_err *err)
{
    if (out->nnames < SHOWN) {
        out->names[out->nnames] =
            rp_arena_text(c->rank->arena, rp_trace_str(c->rank->trace, u->name));
        out->shapes[out->nnames] = u->longs;
        out->first_ns[out->nnames] = u->long_ns / u->longs;
        out->later_ns[out->nnames++] = u->shapes < (int64_t)(u->end - u->first) ? u->later_ns : -1;
    }
    for (size_t i = u->first; i < u->end; i++) {
        rp_event op = c->uses.at[i].op;

        if (is_long(&c->uses.at[i], u))
            RP_TRY(rp_vec_push(&c->longs,
                               ((struct rp_interval){c->rank->trace->ev.ts_ns[op],
                                                     rp_event_end_ns(c->rank->trace, op)}),
                               err));
    }
    return RP_OK;
}

static enum rp_code find_users(struct shapes_ctx *c, struct kept *out, struct rp_err *err)
{
    const struct rp_trace *t = c->rank->trace;
    uint8_t *struck = RP_ARENA_NEW(c->rank->arena, uint8_t, t->nsteps + 1);

    RP_TRY(rp_err_need(struck, err, "looking for new shapes"));
    for (size_t i = 0, end; i < c->uses.n; i = end) {
        struct user u = {.name = c->uses.at[i].name, .first = i};

        for (end = i; end < c->uses.n && c->uses.at[end].name == u.name;)
            end++;
        u.end = end;
        RP_TRY(measure_user(c, &u, err));
        if (plans_anew(&u))
            RP_TRY(rp_vec_push(&c->users, u, err));
    }
    rp_sort(c->users.at, c->users.n, sizeof *c->users.at, by_long_time);
    for (size_t i = 0; i < c->users.n; i++)
        if (comes_again(c, &c->users.at[i], struck))
            RP_TRY(keep_user(c, &c->users.at[i], out, err));
    for (size_t i = 0; i < t->nsteps; i++) {
        out->struck += struck[i] & 1;
        out->steps += c->steps.at[i] != 0;
    }
    return RP_OK;
}

static enum rp_code count_kinds(struct shapes_ctx *c, struct kept *out, struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map known = {0};

    for (size_t i = 0; i < c->rank->trace->nsteps; i++) {
        uint32_t at = 0;

        if (!c->steps.at[i])
            continue;
        RP_TRY(rp_map_intern(&known, c->steps.at[i], (uint32_t)out->kinds, &at, err));
        out->kinds += at == (uint32_t)out->kinds;
    }
    return RP_OK;
}

static enum rp_code new_shapes_measure(const struct rp_finding_rank *rank, void *kept,
                                       struct rp_err *err)
{
    struct shapes_ctx c = {.rank = rank};
    struct kept *out = kept;

    if (rank->trace->nsteps < RP_STEPS_COMPARED)
        return RP_OK;
    enum rp_code code = rp_work_tokens_init(&c.tokens, rank->trace, err);
    if (code == RP_OK)
        code = list_uses(&c, err);
    if (code == RP_OK)
        code = find_first(&c, err);
    if (code == RP_OK)
        code = find_users(&c, out, err);
    if (code == RP_OK && out->nnames) {
        rp_findings_sum_idle(rank, &c.longs, out->cause_ns);
        code = count_kinds(&c, out, err);
    }
    rp_work_tokens_release(&c.tokens);
    rp_map_release(&c.by_op);
    rp_map_release(&c.seen);
    rp_vec_release(&c.uses);
    rp_vec_release(&c.steps);
    rp_vec_release(&c.users);
    rp_vec_release(&c.later);
    rp_vec_release(&c.longs);
    return code;
}

/* ------------------------------------------------------------------ all ranks */

static unsigned kind_of(const struct kept *k)
{
    size_t n = strlen(k->names[0]);

    return rp_torch_is(k->names[0], n, RP_TORCH_ATTENDS)     ? ATTENTION
           : rp_torch_is(k->names[0], n, RP_TORCH_CONVOLVES) ? CONVOLUTION
                                                             : OTHER;
}

static void new_shapes_find(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    struct rp_report_finding *finding =
        k && k->names[0] ? rp_findings_take_idle(f, kind_of(k), k->cause_ns) : NULL;

    if (!finding)
        return;
    for (size_t i = 0; i < SHOWN && k->names[i]; i++) {
        finding->where.names[i] = k->names[i];
        RP_SAY(f, finding, "rank %d: %s: %s of new shapes took %s each%s%s",
               rp_findings_lead_number(f), k->names[i],
               rp_units_count(f->arena, k->shapes[i], "first use"),
               rp_findings_time(f, k->first_ns[i]), k->later_ns[i] < 0 ? "" : ", later ones ",
               k->later_ns[i] < 0 ? "" : rp_findings_time(f, k->later_ns[i]));
    }
    RP_SAY(f, finding, "in %lld of %lld judged steps, which launch %lld different sequences",
           (long long)k->struck, (long long)k->steps, (long long)k->kinds);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, OF(ATTENTION),
     .text = "pad or bucket lengths to a few: each new length is planned anew"},
    {RP_ADVISE_MORE, OF(ATTENTION), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "torch.backends.cuda.enable_cudnn_sdp(False): attention without cuDNN, which plans "
             "for each new shape"},
    {RP_ADVISE_CALL, OF(CONVOLUTION),
     .text = "pad or bucket sizes to a few: each new size is planned anew"},
    {RP_ADVISE_MORE, OF(CONVOLUTION), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "torch.backends.cudnn.benchmark = False: it tries all algorithms for each new size"},
    {RP_ADVISE_CALL, OF(OTHER),
     .text = "pad or bucket the input to a few sizes, so that shapes come again"},
};

const struct rp_finding rp_finding_new_shapes = {
    .id = "new-shapes",
    .kinds = {{"attention", "attention is planned anew for each new length"},
              {"convolution", "convolutions are planned anew for each new size"},
              {"other", "each new shape takes long at its first use"}},
    .condition =
        "of the judged steps of the rank at the end of the chain: a use of an operator is "
        "the first of its shape when what it launches, in a step that launches that, was "
        "not seen before. At least `LONG_SHARE` of the first uses of an operator are "
        "stalls (a millisecond, and 50 times the median of its later uses). Of an "
        "operator whose library is known to plan `PLAN_RATIO` times the median is enough, "
        "and fewer are, if they are `PLAN_TIMES` times as frequent among first uses as "
        "among later ones. They occur in three steps or more, and still in the second half "
        "of the steps",
    .cost = "idle time of the device in these first uses; it is not part of the findings of its "
            "causes",
    .numbers =
        RP_FINDING_NUMBER(LONG_SHARE) RP_FINDING_NUMBER(PLAN_RATIO) RP_FINDING_NUMBER(PLAN_TIMES),
    .test = "explain/new_shapes_come_again",
    RP_KEEPS(new_shapes, new_shapes_measure),
    .find = new_shapes_find,
    RP_ADVICE(advice),
    .of_host = true,
};
