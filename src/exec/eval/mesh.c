/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rendezvous is a barrier in two halves: all arrive, all read, all leave; only then can the next
 * one begin. All partitions of a program execute its collectives in the same order, so the n-th
 * rendezvous of each belongs to the same collective.
 */
#include "exec/eval/mesh.h"

#include <pthread.h>
#include <stdlib.h>

struct rp_mesh {
    unsigned n, arrived, left;
    uint64_t round;
    bool failed, reading;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rp_tensor **values;
};

struct member {
    struct rp_mesh *mesh;
    rp_partition_fn *fn;
    void *user;
    unsigned partition;
    enum rp_code code;
    struct rp_err err;
    pthread_t thread;
    bool started;
};

unsigned rp_mesh_size(const struct rp_mesh *mesh)
{
    return mesh ? mesh->n : 1;
}

static void mesh_fail(struct rp_mesh *m)
{
    pthread_mutex_lock(&m->lock);
    m->failed = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static void *run_member(void *at)
{
    struct member *me = at;

    me->code = me->fn(me->user, me->partition, &me->err);
    if (me->code != RP_OK)
        mesh_fail(me->mesh);
    return NULL;
}

enum rp_code rp_mesh_rendezvous(struct rp_mesh *m, unsigned partition, struct rp_tensor *mine,
                                struct rp_tensor *const **all, struct rp_err *err)
{
    pthread_mutex_lock(&m->lock);
    while (m->reading && !m->failed) /* waits while the previous rendezvous is not over */
        pthread_cond_wait(&m->changed, &m->lock);
    uint64_t round = m->round;
    m->values[partition] = mine;
    if (++m->arrived == m->n) {
        m->reading = true;
        m->arrived = 0;
        m->round++;
        pthread_cond_broadcast(&m->changed);
    }
    while (m->round == round && !m->failed)
        pthread_cond_wait(&m->changed, &m->lock);
    bool failed = m->failed;
    pthread_mutex_unlock(&m->lock);
    *all = m->values;
    return failed ? rp_err_set(err, RP_CANCELLED, "another partition failed") : RP_OK;
}

void rp_mesh_leave(struct rp_mesh *m)
{
    pthread_mutex_lock(&m->lock);
    if (++m->left == m->n) {
        m->left = 0;
        m->reading = false;
    }
    pthread_cond_broadcast(&m->changed);
    /* a value must stay until all other partitions have read it */
    while (m->reading && !m->failed)
        pthread_cond_wait(&m->changed, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

enum rp_code rp_mesh_run(unsigned n, rp_partition_fn *fn, void *user, struct rp_mesh **mesh,
                         struct rp_err *err)
{
    struct rp_mesh m = {.n = n};
    struct member *members = calloc(n, sizeof *members);
    enum rp_code code = RP_OK;

    m.values = calloc(n, sizeof(struct rp_tensor *));
    if (!members || !m.values) {
        free(members);
        free(m.values);
        return rp_err_nomem(err, "starting partitions");
    }
    pthread_mutex_init(&m.lock, NULL);
    pthread_cond_init(&m.changed, NULL);
    *mesh = &m;
    for (unsigned i = 0; i < n; i++) {
        members[i] = (struct member){.mesh = &m, .fn = fn, .user = user, .partition = i};
        members[i].started = !pthread_create(&members[i].thread, NULL, run_member, &members[i]);
        if (!members[i].started) {
            members[i].code = rp_err_set(&members[i].err, RP_NOMEM, "cannot start a thread");
            mesh_fail(&m);
        }
    }
    code = RP_OK;
    for (unsigned i = 0; i < n; i++)
        if (members[i].started)
            pthread_join(members[i].thread, NULL);
    for (unsigned i = 0; i < n; i++) {
        bool first = code == RP_OK || code == RP_CANCELLED;

        if (members[i].code != RP_OK && first) {
            code = members[i].code;
            if (err)
                *err = members[i].err;
        }
    }
    *mesh = NULL;
    pthread_mutex_destroy(&m.lock);
    pthread_cond_destroy(&m.changed);
    free(members);
    free(m.values);
    return code;
}
