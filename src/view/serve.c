/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the page of a view and its answers. */
#include "http/request.h"
#include "http/server.h"
#include "view/view.h"

#include <string.h>

struct served_view {
    struct rp_view *view;
    struct rp_view_server options;
};

static enum rp_code answer_view(void *user, const struct rp_http_request *request,
                                struct rp_out *body, const char **type, struct rp_err *err)
{
    const struct served_view *served = user;

    *type = *request->path ? "application/json" : "text/html";
    return *request->path ? rp_view_answer(served->view, request->path, request->query, body, err)
                          : rp_view_put_page(served->view, NULL, body, err);
}

/* Questions are asked one at a time, because an answer that is kept is made once. */
static bool is_slow(void *user, const struct rp_http_request *request)
{
    static const char *const paths[] = {"explain", "compare", "sum"};

    (void)user;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (!strcmp(request->path, paths[i]))
            return true;
    return false;
}

static void view_is_ready(void *user, const char *address)
{
    const struct served_view *served = user;

    if (served->options.ready)
        served->options.ready(served->options.user, address);
}

enum rp_code rp_view_serve(struct rp_view *view, const struct rp_view_server *options,
                           struct rp_err *err)
{
    struct served_view served = {.view = view, .options = {.stop_fd = -1}};
    struct rp_http_server server = {
        .answer = answer_view, .slow = is_slow, .ready = view_is_ready, .user = &served};

    rp_copy_view(&served.options, 0, sizeof served.options, options, options->struct_size);
    server.port = served.options.port;
    server.stop_fd = served.options.stop_fd;
    server.keep = served.options.keep;
    return rp_http_serve(&server, err);
}
