/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies names, labels and sort indices that metadata events (phase M) give to processes and
 * threads. Runs in the order of the file: if two events name the same object the last one wins, as
 * in Chrome's viewer. The events themselves are kept.
 */
#include "trace/build/state.h"
#include "trace/finish/finish.h"

enum subject { PROCESS_NAME, PROCESS_LABELS, PROCESS_SORT, THREAD_NAME, THREAD_SORT, NSUBJECTS };

static const struct {
    const char *name, *key;
    uint8_t type;
} subjects[NSUBJECTS] = {
    [PROCESS_NAME] = {"process_name", "name", RP_ARG_STR},
    [PROCESS_LABELS] = {"process_labels", "labels", RP_ARG_STR},
    [PROCESS_SORT] = {"process_sort_index", "sort_index", RP_ARG_I64},
    [THREAD_NAME] = {"thread_name", "name", RP_ARG_STR},
    [THREAD_SORT] = {"thread_sort_index", "sort_index", RP_ARG_I64},
};

static void apply_metadata(struct rp_builder *b, uint32_t track, enum subject subject,
                           const struct rp_arg *arg)
{
    struct rp_track_info *t = &b->tracks.at[track];
    struct rp_process *p = &b->processes.at[t->process];

    switch (subject) {
    case PROCESS_NAME:
        p->name = arg->v.s;
        break;
    case PROCESS_LABELS:
        p->labels = arg->v.s;
        break;
    case PROCESS_SORT:
        p->sort_index = arg->v.i;
        break;
    case THREAD_NAME:
        t->name = arg->v.s;
        break;
    default:
        t->sort_index = arg->v.i;
        break;
    }
}

enum rp_code rp_pass_metadata(struct rp_builder *b, struct rp_err *err)
{
    rp_str name[NSUBJECTS], key[NSUBJECTS];
    struct rp_arg arg;
    uint32_t i, s;

    (void)err;
    for (s = 0; s < NSUBJECTS; s++) {
        name[s] = rp_build_find_str(b, subjects[s].name);
        key[s] = rp_build_find_str(b, subjects[s].key);
    }
    for (i = 0; i < b->ev.n; i++) {
        if (rp_build_origin_of(b, i)->phase != 'M')
            continue;
        for (s = 0; s < NSUBJECTS && b->ev.name.at[i] != name[s]; s++)
            ;
        if (s < NSUBJECTS &&
            rp_args_find(&b->trace->args, b->ev.shape.at[i], b->ev.arg_row.at[i], key[s], &arg) &&
            arg.type == subjects[s].type)
            apply_metadata(b, b->ev.track.at[i], (enum subject)s, &arg);
    }
    return RP_OK;
}
