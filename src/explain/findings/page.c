/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the page of findings in the manual from their rows. */
#include "explain/findings/finding.h"
#include "facts/ranks/collective_args.h"
#include "io/output.h"

#include <reprise/question.h>

static const char *const serves_names[RP_SERVES_COUNT] = {
#define SERVES_NAME(name, text) text,
    RP_SERVES_MAP(SERVES_NAME)
#undef SERVES_NAME
};

/* Keys that are sets of bits. */
static const struct {
    const char *const *names;
    unsigned n;
    size_t offset, size;
    const char *before;
} sets[] = {
#define SET(member, names_, n_, before_)                         \
    {                                                            \
        names_, n_, offsetof(struct rp_advice_row, member),      \
            sizeof(((struct rp_advice_row *)0)->member), before_ \
    }
    SET(frameworks, rp_framework_names, RP_FRAMEWORKS, ""),
    SET(vendors, rp_vendor_names, RP_VENDORS, ""),
    SET(modes, rp_mode_names, RP_MODES, ""),
    SET(parallels, rp_parallel_names, RP_PARALLELS, "parallel: "),
    SET(transports, rp_transport_names, RP_TRANSPORTS, "transport: "),
    SET(serves, serves_names, RP_SERVES_COUNT, "serves: "),
    SET(collectives, rp_coll_kind_names, RP_COLL_KINDS, "most time in: "),
};

/* Keys that are true or false. */
static const struct {
    size_t offset;
    const char *yes, *no;
} flags[] = {
    {offsetof(struct rp_advice_row, compiled), "compiled", "not compiled"},
    {offsetof(struct rp_advice_row, graphs), "uses graphs", "no graphs"},
    {offsetof(struct rp_advice_row, in_graphs), "most work is of graphs",
     "little work is of graphs"},
    {offsetof(struct rp_advice_row, plain_update), "plain update of parameters", "fused update"},
    {offsetof(struct rp_advice_row, with_stack), "Python frames recorded", "no Python frames"},
    {offsetof(struct rp_advice_row, ours), "recorded by `reprise record`", "recorded by others"},
    {offsetof(struct rp_advice_row, sampled), "stacks sampled", "no samples of stacks"},
    {offsetof(struct rp_advice_row, no_bf16), "device without bf16", "device with bf16"},
    {offsetof(struct rp_advice_row, half_comm), "sends 16 bits or fewer",
     "sends more than 16 bits"},
    {offsetof(struct rp_advice_row, system), "recorded by a system profiler",
     "by a framework's profiler"},
};

static unsigned set_of(const struct rp_advice_row *row, size_t offset, size_t size)
{
    uint16_t wide;

    if (size == 1)
        return ((const uint8_t *)row)[offset];
    memcpy(&wide, (const char *)row + offset, sizeof wide);
    return wide;
}

/* "pytorch, nvidia, not compiled", or "any". */
static void put_keys(struct rp_out *to, const struct rp_finding *finding,
                     const struct rp_advice_row *row)
{
    const char *between = "";

    for (unsigned i = 0; row->kinds && finding->kinds[i].title; i++)
        if (row->kinds & OF(i)) {
            rp_out_printf(to, "%s*%s*", between, finding->kinds[i].key);
            between = ", ";
        }
    for (size_t k = 0; k < sizeof sets / sizeof sets[0]; k++) {
        unsigned set = set_of(row, sets[k].offset, sets[k].size);
        const char *before = sets[k].before;

        for (unsigned i = 0; i < sets[k].n; i++)
            if (set >> i & 1) {
                rp_out_printf(to, "%s%s%s", between, before, sets[k].names[i]);
                between = ", ";
                before = "";
            }
    }
    for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++) {
        uint8_t key = ((const uint8_t *)row)[flags[k].offset];

        if (key == RP_KEY_ANY)
            continue;
        rp_out_printf(to, "%s%s", between, key == RP_KEY_YES ? flags[k].yes : flags[k].no);
        between = ", ";
    }
    rp_out_text(to, *between ? "" : "any");
}

static void put_cell(struct rp_out *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            rp_out_char(to, '\\');
        rp_out_char(to, *text);
    }
}

static void put_finding(struct rp_out *to, const struct rp_finding *finding)
{
    rp_out_printf(to, "\n## %s\n\n", finding->id);
    for (size_t i = 0; finding->kinds[i].title; i++) {
        const struct rp_finding_kind *kind = &finding->kinds[i];

        rp_out_printf(to, *kind->key ? "- *%s*: %s" : "%s%s", kind->key, kind->title);
        if (kind->least_share > 0)
            rp_out_printf(to, " (from %g %% of the span on)", 100 * kind->least_share);
        rp_out_text(to, "\n");
    }
    if (finding->condition)
        rp_out_printf(to, "\n**Condition:** %s.\n", finding->condition);
    if (finding->cost)
        rp_out_printf(to, "\n**Cost:** %s.\n", finding->cost);
    else
        rp_out_printf(to, "\n**Cost:** idle time on the chain whose cause is `%s`.\n",
                      rp_gap_cause_names[__builtin_ctz(finding->idle)]);
    if (finding->numbers)
        rp_out_printf(to, "\n**Numbers:** %sTest: `%s`.\n", finding->numbers, finding->test);
    rp_out_text(to, "\n| for | what to try | what-if |\n|---|---|---|\n");
    for (size_t i = 0; i < finding->nadvice; i++) {
        const struct rp_advice_row *row = &finding->advice[i];

        rp_out_text(to, "| ");
        put_keys(to, finding, row);
        rp_out_text(to, " | ");
        put_cell(to, *row->text ? row->text : "(nothing)");
        rp_out_text(to, row->what_if ? " | `" : " |");
        put_cell(to, row->what_if ? row->what_if : "");
        rp_out_text(to, row->what_if ? "` |\n" : " |\n");
    }
}

enum rp_code rp_findings_markdown(int fd, struct rp_err *err)
{
    struct rp_out *to;

    RP_TRY(rp_out_open_fd(fd, "findings", &to, err));
    for (const struct rp_finding *const *row = rp_finding_rows; *row; row++)
        put_finding(to, *row);
    return rp_out_close(to, err);
}
