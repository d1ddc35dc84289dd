/* SPDX-License-Identifier: Apache-2.0 */
#include "job/job.h"

#include <stdlib.h>

void rp_job_release(struct rp_job *job)
{
    size_t i;

    for (i = 0; i < job->nranks; i++) {
        struct rp_job_rank *r = &job->ranks[i];

        rp_vec_release(&r->ops);
        rp_vec_release(&r->spans);
        rp_vec_release(&r->transfers);
        rp_vec_release(&r->edges);
        rp_vec_release(&r->links);
        rp_arena_release(&r->arena);
    }
    free(job->ranks);
    job->ranks = NULL;
    job->nranks = 0;
    for (i = 0; i < job->nnodes; i++) {
        rp_vec_release(&job->nodes[i].halves);
        rp_vec_release(&job->nodes[i].ops);
    }
    free(job->nodes);
    job->nodes = NULL;
    job->nnodes = 0;
    rp_vec_release(&job->keys);
    rp_vec_release(&job->remarks);
    rp_arena_release(&job->arena);
}
