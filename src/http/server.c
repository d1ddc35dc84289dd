/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: one thread, which waits for all connections at once, and one for requests that take
 * long (slow.h). It listens only on the loopback interface; if it has a token, it answers only
 * programs of the same user that know it. A page keeps one request ("alive") open; when the last of
 * them is gone, so is the browser.
 */
#include "http/server.h"

#include "http/request.h"
#include "http/slow.h"
#include "io/output.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 64
#define IDLE_MS     60000 /* for a connection without a request */
#define REQUEST_MS  10000 /* for a request to arrive completely, or an answer to be taken */
#define REAPPEAR_MS 4000  /* in which a reloaded page must come back */

struct connection {
    int fd; /* -1: none */
    bool alive;
    char *in;
    size_t nin;
    struct rp_out *out; /* the answer, while it is sent */
    size_t sent;
    bool closing;    /* after the answer */
    uint64_t ticket; /* of the answer that the other thread makes; 0 if none */
    int64_t since_ms;
};

struct server {
    const struct rp_http_server *options;
    struct rp_http_guard guard;
    struct connection at[CONNECTIONS];
    int listener, done_fd;
    struct rp_http_slow *slow; /* NULL if no request takes long */
    uint64_t tickets;
    bool had_page;
    int64_t lonely_ms; /* since when there has been no page */
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ------------------------------------------------------------------ connections */

static void connection_close(struct connection *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->in);
    rp_out_abandon(c->out);
    *c = (struct connection){.fd = -1};
}

/* Returns the user of the socket at the other end, as the system lists it; -1 if not known. */
static long peer_user(const struct sockaddr_in *peer, unsigned port)
{
    FILE *list = fopen("/proc/net/tcp", "re");
    char line[512];
    long found = -1;

    while (list && found < 0 && fgets(line, sizeof line, list)) {
        unsigned local, local_port, remote, remote_port;
        long user;

        if (sscanf(line, " %*d: %x:%x %x:%x %*x %*x:%*x %*x:%*x %*x %ld", &local, &local_port,
                   &remote, &remote_port, &user) == 5 &&
            local == peer->sin_addr.s_addr && local_port == ntohs(peer->sin_port) &&
            remote_port == port)
            found = user;
    }
    if (list)
        fclose(list);
    return found;
}

/* Finds a free place; if there is none, that of the connection that has waited longest for its next
   request. */
static struct connection *find_place(struct server *s)
{
    struct connection *oldest = NULL;

    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &s->at[i];

        if (c->fd < 0)
            return c;
        if (!c->alive && !c->out && !c->ticket && (!oldest || c->since_ms < oldest->since_ms))
            oldest = c;
    }
    if (oldest)
        connection_close(oldest);
    return oldest;
}

static void accept_one(struct server *s)
{
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    int fd = accept4(s->listener, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return;
    long user = s->options->any_user ? -1 : peer_user(&peer, s->guard.port);
    struct connection *c = user < 0 || user == (long)getuid() || user == 0 ? find_place(s) : NULL;
    if (c)
        c->in = malloc(RP_HTTP_REQUEST_MOST);
    if (!c || !c->in) {
        close(fd);
        return;
    }
    c->fd = fd;
    c->since_ms = now_ms();
}

/* ------------------------------------------------------------------ answers */

#define SAFE_HEADERS                              \
    "Cache-Control: no-store\r\n"                 \
    "X-Content-Type-Options: nosniff\r\n"         \
    "X-Frame-Options: DENY\r\n"                   \
    "Referrer-Policy: no-referrer\r\n"            \
    "Cross-Origin-Opener-Policy: same-origin\r\n" \
    "Cross-Origin-Resource-Policy: same-origin\r\n"

static void put_answer(struct connection *c, int status, const char *type, const char *body,
                       size_t n, bool head)
{
    rp_out_printf(c->out,
                  "HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n"
                  "%s" SAFE_HEADERS "\r\n",
                  status, rp_http_reason(status), type, n,
                  c->closing ? "Connection: close\r\n" : "");
    if (!head)
        rp_out_write(c->out, body, n);
}

static void put_failure(struct connection *c, int status, const char *text, bool head)
{
    char body[1100];
    int n = snprintf(body, sizeof body, "%d %s%s%s\n", status, rp_http_reason(status),
                     text ? ": " : "", text ? text : "");

    put_answer(c, status, "text/plain", body, (size_t)n, head);
}

static void put_result(struct connection *c, enum rp_code code, struct rp_out *body,
                       const char *type, const struct rp_err *err, bool head)
{
    size_t n;

    if (code != RP_OK) {
        put_failure(c, code == RP_USAGE ? 400 : code == RP_MISSING ? 404 : 500, err->text, head);
        return;
    }
    const char *bytes = rp_out_borrow_memory(body, &n);
    put_answer(c, 200, type, bytes, n, head);
}

static void answer_request(struct server *s, struct connection *c,
                           const struct rp_http_request *request)
{
    struct rp_err err = RP_ERR_INIT;
    const char *type = "text/plain";
    struct rp_out *body = NULL;

    if (!s->options->any_user && !strcmp(request->path, "alive")) {
        c->alive = s->had_page = true;
        rp_out_text(c->out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" SAFE_HEADERS
                            "\r\n: the page is open\n\n");
        return;
    }
    enum rp_code code = rp_out_open_memory(&body, &err);
    if (code == RP_OK)
        code = s->options->answer(s->options->user, request, body, &type, &err);
    if (code == RP_OK)
        code = rp_out_flush(body, &err);
    put_result(c, code, body, type, &err, request->head);
    rp_out_abandon(body);
}

/* Gives a connection room for its answer. */
static bool begin_answer(struct connection *c)
{
    if (rp_out_open_memory(&c->out, NULL) != RP_OK) {
        connection_close(c);
        return false;
    }
    c->sent = 0;
    c->since_ms = now_ms();
    return true;
}

static void end_answer(struct connection *c)
{
    if (rp_out_flush(c->out, NULL) != RP_OK)
        connection_close(c);
}

static bool ask_elsewhere(struct server *s, struct connection *c,
                          const struct rp_http_request *request)
{
    if (!s->slow || !s->options->slow(s->options->user, request) ||
        !rp_http_slow_ask(s->slow, request, s->tickets + 1))
        return false;
    c->ticket = ++s->tickets;
    return true;
}

/* Begins the next answer if a request has arrived. */
static void take_request(struct server *s, struct connection *c)
{
    struct rp_http_request request;
    size_t used = 0;
    int status = rp_http_parse(c->in, c->nin, &s->guard, &request, &used);

    if (status == 200) {
        memmove(c->in, c->in + used, c->nin - used);
        c->nin -= used;
    }
    if (!status || (status == 200 && ask_elsewhere(s, c, &request)) || !begin_answer(c))
        return;
    if (status == 200) {
        answer_request(s, c, &request);

        /* No connection could be served in this time, so it does not count against any. */
        int64_t spent_ms = now_ms() - c->since_ms;
        for (size_t i = 0; i < CONNECTIONS; i++)
            s->at[i].since_ms += spent_ms;
        if (s->lonely_ms)
            s->lonely_ms += spent_ms;
    } else {
        c->closing = true; /* the rest may not be the begin of a request */
        put_failure(c, status, NULL, false);
    }
    end_answer(c);
}

static void send_some(struct server *s, struct connection *c)
{
    size_t n;
    const char *bytes = rp_out_borrow_memory(c->out, &n);
    ssize_t sent = send(c->fd, bytes + c->sent, n - c->sent, MSG_NOSIGNAL);

    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent < 0) {
        connection_close(c);
        return;
    }
    c->sent += (size_t)sent;
    c->since_ms = now_ms();
    if (c->sent < n)
        return;
    rp_out_abandon(c->out);
    c->out = NULL;
    if (c->closing) /* arriving bytes are still read, because the system would otherwise discard the
                       answer */
        shutdown(c->fd, SHUT_WR);
    else if (!c->alive)
        take_request(s, c);
}

static void receive_some(struct server *s, struct connection *c)
{
    if (c->alive || c->closing)
        c->nin = 0; /* nothing may follow */
    ssize_t n = recv(c->fd, c->in + c->nin, RP_HTTP_REQUEST_MOST - c->nin, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        connection_close(c);
        return;
    }
    if (!c->nin && !c->closing)
        c->since_ms = now_ms();
    c->nin += (size_t)n;
    if (!c->alive && !c->closing && !c->ticket)
        take_request(s, c);
}

/* ------------------------------------------------------------------ waiting */

/* Whether the browser has closed the last page for good. */
static bool is_left(struct server *s, int64_t now)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (s->at[i].alive) {
            s->lonely_ms = 0;
            return false;
        }
    if (!s->had_page || s->options->keep)
        return false;
    if (!s->lonely_ms)
        s->lonely_ms = now;
    return now - s->lonely_ms > REAPPEAR_MS;
}

static nfds_t list_waits(struct server *s, int stop_fd, struct pollfd *waits, size_t *which)
{
    nfds_t n = 0;

    waits[n++] = (struct pollfd){.fd = s->listener, .events = POLLIN};
    waits[n++] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
    waits[n++] = (struct pollfd){.fd = s->done_fd, .events = POLLIN};
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (s->at[i].fd >= 0) {
            which[n] = i;
            waits[n++] =
                (struct pollfd){.fd = s->at[i].fd, .events = s->at[i].out ? POLLOUT : POLLIN};
        }
    return n;
}

static enum rp_code serve_all(struct server *s, int stop_fd, struct rp_err *err)
{
    struct pollfd waits[CONNECTIONS + 3];
    size_t which[CONNECTIONS + 3];

    for (;;) {
        nfds_t n = list_waits(s, stop_fd, waits, which);

        if (poll(waits, n, 1000) < 0 && errno != EINTR)
            return rp_err_set_os(err, errno, "cannot wait for requests");
        if (stop_fd >= 0 && waits[1].revents)
            return RP_OK;
        for (nfds_t i = 3; i < n; i++) {
            struct connection *c = &s->at[which[i]];

            if (waits[i].revents && c->out)
                send_some(s, c);
            else if (waits[i].revents)
                receive_some(s, c);
        }
        if (s->slow) {
            /* Sends the answers of the other thread to the clients that still wait for them. */
            struct rp_http_job *job;

            while ((job = rp_http_slow_take(s->slow))) {
                for (size_t i = 0; i < CONNECTIONS; i++) {
                    struct connection *c = &s->at[i];

                    if (c->fd < 0 || c->ticket != job->ticket)
                        continue;
                    c->ticket = 0;
                    if (begin_answer(c)) {
                        put_result(c, job->code, job->body, job->type, &job->err,
                                   job->request.head);
                        end_answer(c);
                    }
                }
                rp_http_job_free(job);
            }
        }
        if (waits[0].revents)
            accept_one(s);
        int64_t now = now_ms();

        /* Closes connections that take too long. */
        for (size_t i = 0; i < CONNECTIONS; i++) {
            struct connection *c = &s->at[i];
            int64_t most = c->out || c->nin || c->closing ? REQUEST_MS : IDLE_MS;

            if (c->fd >= 0 && !c->alive && !c->ticket && now - c->since_ms > most)
                connection_close(c);
        }

        if (is_left(s, now))
            return RP_OK;
    }
}

/* ------------------------------------------------------------------ beginning */

static enum rp_code listen_on(struct server *s, unsigned port, struct rp_err *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int yes = 1;

    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener < 0)
        return rp_err_set_os(err, errno, "cannot open a socket");
    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(s->listener, (struct sockaddr *)&address, size) || listen(s->listener, 32) ||
        getsockname(s->listener, (struct sockaddr *)&address, &size))
        return rp_err_set_os(err, errno, "cannot listen on port %u of 127.0.0.1", port);
    s->guard.port = ntohs(address.sin_port);
    return RP_OK;
}

static enum rp_code serve_on(struct server *s, struct rp_err *err)
{
    const struct rp_http_server *options = s->options;
    char address[96];

    if (options->port > 65535)
        return rp_err_set(err, RP_USAGE, "there is no port %u", options->port);
    if (!options->any_user) {
        unsigned char bytes[RP_HTTP_TOKEN / 2];

        if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
            return rp_err_set_os(err, errno, "cannot get random numbers");
        for (size_t i = 0; i < sizeof bytes; i++)
            snprintf(s->guard.token + 2 * i, 3, "%02x", bytes[i]);
    }
    RP_TRY(listen_on(s, options->port, err));
    if (options->slow)
        RP_TRY(rp_http_slow_new(options, &s->slow, &s->done_fd, err));
    snprintf(address, sizeof address, "http://127.0.0.1:%u/%s%s", s->guard.port, s->guard.token,
             options->any_user ? "" : "/");
    if (options->ready)
        options->ready(options->user, address);
    return serve_all(s, options->stop_fd, err);
}

enum rp_code rp_http_serve(const struct rp_http_server *options, struct rp_err *err)
{
    struct server *s = calloc(1, sizeof *s);

    RP_TRY(rp_err_need(s, err, "serving requests"));
    s->options = options;
    s->listener = s->done_fd = -1;
    for (size_t i = 0; i < CONNECTIONS; i++)
        s->at[i].fd = -1;
    enum rp_code code = serve_on(s, err);
    rp_http_slow_free(s->slow);
    for (size_t i = 0; i < CONNECTIONS; i++)
        connection_close(&s->at[i]);
    if (s->listener >= 0)
        close(s->listener);
    free(s);
    return code;
}
