/* SPDX-License-Identifier: Apache-2.0 */
/* Says in words what a what-if selected. O(n log n) in the selected tasks. */
#include "base/order.h"
#include "sim/whatif/nodes.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 3, NAME_BYTES = 60 };

struct name_count {
    uint32_t name, count;
};

RP_ORDER(by_count, struct name_count, RP_DOWN(count), RP_UP(name))

enum rp_code rp_sim_match(const struct rp_sim_run *run, rp_sim_task_vec *list, uint32_t task,
                          struct rp_err *err)
{
    return run->says ? rp_vec_push(list, task, err) : RP_OK;
}

RP_ORDER(by_number, uint32_t, RP_COMPARE(*a, *b))

/* Replaces the list of tasks by their names, which are then counted. */
static size_t count_names(const struct rp_sim_run *run, rp_sim_task_vec *list,
                          struct name_count *out)
{
    size_t i, n = 0;

    for (i = 0; i < list->n; i++)
        list->at[i] = list->at[i] < rp_sim_nnodes(run) ? rp_sim_node(run, list->at[i])->name : 0;
    qsort(list->at, list->n, sizeof *list->at, by_number);
    for (i = 0; i < list->n; i++) {
        if (!n || out[n - 1].name != list->at[i])
            out[n++] = (struct name_count){list->at[i], 0};
        out[n - 1].count++;
    }
    qsort(out, n, sizeof *out, by_count);
    return n;
}

/* Long names end with '…', not inside a character of several bytes. */
static int shown_bytes(const char *name)
{
    int n = NAME_BYTES;

    if (strlen(name) <= NAME_BYTES)
        return NAME_BYTES;
    while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static const char *describe(struct rp_sim_run *run, size_t ntasks, const struct name_count *names,
                            size_t n)
{
    const char *text = rp_arena_textf(run->says, "%zu task%s", ntasks, ntasks == 1 ? "" : "s");

    for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) {
        const char *name = run->graph->names.at[names[i].name];

        text = rp_arena_textf(run->says, "%s%s'%.*s%s' (%u)", text, i ? ", " : ": ",
                              shown_bytes(name), *name ? name : "what a what-if added",
                              strlen(name) > NAME_BYTES ? "…" : "", names[i].count);
    }
    if (n > NAMES_SHOWN)
        text = rp_arena_textf(run->says, "%s and %zu more name%s", text, n - NAMES_SHOWN,
                              n == NAMES_SHOWN + 1 ? "" : "s");
    return text;
}

enum rp_code rp_sim_say(struct rp_sim_run *run, const char *what, rp_sim_task_vec *list,
                        struct rp_err *err)
{
    struct name_count *names = run->says ? malloc((list->n + 1) * sizeof *names) : NULL;
    size_t ntasks = list->n;

    if (run->says && !names)
        return rp_err_nomem(err, "simulating");
    if (names) {
        const char *text = describe(run, ntasks, names, count_names(run, list, names));

        run->said = rp_arena_textf(run->says, "%s%s%s%s%s", run->said ? run->said : "",
                                   run->said ? "; " : "", what ? what : "", what ? " " : "", text);
    }
    free(names);
    rp_vec_release(list);
    return run->says ? rp_arena_check(run->says, "simulating", err) : RP_OK;
}
