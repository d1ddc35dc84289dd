/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread with two lists: waiting jobs and finished jobs. A byte in a pipe wakes the server for
 * each finished one.
 */
#include "http/slow.h"

#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct rp_http_slow {
    const struct rp_http_server *server;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ends;
    struct rp_http_job *waiting, **last, *done;
    int pipe[2];
};

void rp_http_job_free(struct rp_http_job *job)
{
    if (job)
        rp_out_abandon(job->body);
    free(job);
}

static void free_list(struct rp_http_job *job)
{
    while (job) {
        struct rp_http_job *next = job->next;

        rp_http_job_free(job);
        job = next;
    }
}

static void *answer_jobs(void *user)
{
    struct rp_http_slow *slow = user;

    pthread_mutex_lock(&slow->lock);
    while (!slow->ends) {
        struct rp_http_job *job = slow->waiting;

        if (!job) {
            pthread_cond_wait(&slow->changed, &slow->lock);
            continue;
        }
        slow->waiting = job->next;
        if (!slow->waiting)
            slow->last = &slow->waiting;
        pthread_mutex_unlock(&slow->lock);

        job->code = rp_out_open_memory(&job->body, &job->err);
        if (job->code == RP_OK)
            job->code = slow->server->answer(slow->server->user, &job->request, job->body,
                                             &job->type, &job->err);
        if (job->code == RP_OK)
            job->code = rp_out_flush(job->body, &job->err);

        pthread_mutex_lock(&slow->lock);
        job->next = slow->done;
        slow->done = job;
        (void)!write(slow->pipe[1], "", 1); /* if it is full, the server wakes up anyway */
    }
    pthread_mutex_unlock(&slow->lock);
    return NULL;
}

enum rp_code rp_http_slow_new(const struct rp_http_server *server, struct rp_http_slow **out,
                              int *fd, struct rp_err *err)
{
    struct rp_http_slow *slow = calloc(1, sizeof *slow);

    *out = NULL;
    RP_TRY(rp_err_need(slow, err, "serving requests"));
    slow->server = server;
    slow->last = &slow->waiting;
    if (pipe2(slow->pipe, O_CLOEXEC | O_NONBLOCK)) {
        free(slow);
        return rp_err_set_os(err, errno, "cannot open a pipe");
    }
    pthread_mutex_init(&slow->lock, NULL);
    pthread_cond_init(&slow->changed, NULL);
    if (pthread_create(&slow->thread, NULL, answer_jobs, slow)) {
        close(slow->pipe[0]);
        close(slow->pipe[1]);
        free(slow);
        return rp_err_set(err, RP_IO, "cannot start a thread");
    }
    *out = slow;
    *fd = slow->pipe[0];
    return RP_OK;
}

void rp_http_slow_free(struct rp_http_slow *slow)
{
    if (!slow)
        return;
    pthread_mutex_lock(&slow->lock);
    slow->ends = true;
    pthread_cond_signal(&slow->changed);
    pthread_mutex_unlock(&slow->lock);
    pthread_join(slow->thread, NULL);
    free_list(slow->waiting);
    free_list(slow->done);
    close(slow->pipe[0]);
    close(slow->pipe[1]);
    pthread_cond_destroy(&slow->changed);
    pthread_mutex_destroy(&slow->lock);
    free(slow);
}

bool rp_http_slow_ask(struct rp_http_slow *slow, const struct rp_http_request *request,
                      uint64_t ticket)
{
    struct rp_http_job *job = calloc(1, sizeof *job);

    if (!job)
        return false;
    job->request = *request;
    job->ticket = ticket;
    job->type = "text/plain";
    job->err = (struct rp_err)RP_ERR_INIT;
    pthread_mutex_lock(&slow->lock);
    *slow->last = job;
    slow->last = &job->next;
    pthread_cond_signal(&slow->changed);
    pthread_mutex_unlock(&slow->lock);
    return true;
}

struct rp_http_job *rp_http_slow_take(struct rp_http_slow *slow)
{
    char bytes[64];

    while (read(slow->pipe[0], bytes, sizeof bytes) > 0)
        ;
    pthread_mutex_lock(&slow->lock);
    struct rp_http_job *job = slow->done;
    if (job)
        slow->done = job->next;
    pthread_mutex_unlock(&slow->lock);
    return job;
}
