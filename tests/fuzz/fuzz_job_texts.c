/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a dPRO directory: anything is read as a graph, as rings and as a
   description of operators, or refused. */
#include "job/records.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void release(struct rp_job_rank *r)
{
    rp_vec_release(&r->edges);
    rp_vec_release(&r->links);
    rp_arena_release(&r->arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;
    struct rp_job_rank r;
    struct rp_job job = {0};
    size_t i;

    memset(&r, 0, sizeof r);
    rp_arena_init(&r.arena);
    if (rp_job_read_graph((const char *)data, size, &r, &err) == RP_OK)
        for (i = 0; i < r.edges.n; i++)
            if (strlen(r.edges.at[i].from) > size || strlen(r.edges.at[i].to) > size)
                __builtin_trap();
    release(&r);
    memset(&r, 0, sizeof r);
    rp_arena_init(&r.arena);
    if (rp_job_read_rings((const char *)data, size, &r, &err) == RP_OK)
        for (i = 0; i < r.links.n; i++)
            if (r.links.at[i].channel < 0 || r.links.at[i].to < 0)
                __builtin_trap();
    release(&r);
    memset(&r, 0, sizeof r);
    rp_arena_init(&r.arena);
    if (rp_input_open_memory("fuzz", data, size, NULL, &in, &err) == RP_OK) {
        if (rp_job_read_metadata(in, &r, &err) == RP_OK)
            for (i = 0; i < r.edges.n; i++)
                if (strlen(r.edges.at[i].from) > size || strlen(r.edges.at[i].to) > size)
                    __builtin_trap();
        rp_input_close(in);
    }
    release(&r);
    if (rp_job_read_keys((const char *)data, size, &job, &err) == RP_OK)
        for (i = 0; i < job.keys.n; i++)
            if (job.keys.at[i].key < 0 || job.keys.at[i].tensor < 0 || job.keys.at[i].part > size)
                __builtin_trap();
    rp_vec_release(&job.keys);
    return 0;
}
