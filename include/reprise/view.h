/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_VIEW_H
#define REPRISE_VIEW_H
/*
 * A view: the traces of a run in memory, prepared for a timeline in a browser. It is served on the
 * loopback interface, or saved as a page that holds the data of some steps.
 */
#include <reprise/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rp_view;

struct rp_view_options {
    size_t struct_size; /* sizeof(struct rp_view_options) */
    const char *ranks;  /* only these: "0,3" or "8-15"; NULL: all */
};

/* One run, or two to be shown one above the other. The datasets must outlive the view; options may
   be NULL. */
RP_API enum rp_code rp_view_open(const struct rp_dataset *const *runs, size_t nruns,
                                 const struct rp_view_options *options, struct rp_view **out,
                                 struct rp_err *err);
RP_API void rp_view_free(struct rp_view *view); /* NULL is fine */

struct rp_view_server {
    size_t struct_size; /* sizeof(struct rp_view_server) */
    unsigned port;      /* 0: any that is free */
    int stop_fd;        /* the server ends when this can be read; -1: none */
    int keep;           /* 1: it does not end when the last page is closed */
    /* Called once, when the server listens, with the address of the page. */
    void (*ready)(void *user, const char *address);
    void *user;
};

/* Serves the page and answers its requests until stop_fd can be read, or the browser has closed the
   page. Only programs of this user on this machine that know the address get an answer. */
RP_API enum rp_code rp_view_serve(struct rp_view *view, const struct rp_view_server *server,
                                  struct rp_err *err);

/* Writes the page as one file that needs no server, with all events of the named steps: "3" or
   "3:2" (two, from step 3 on); NULL: of the whole recording. */
RP_API enum rp_code rp_view_save(struct rp_view *view, const char *path, const char *steps,
                                 struct rp_err *err);

#ifdef __cplusplus
}
#endif
#endif
