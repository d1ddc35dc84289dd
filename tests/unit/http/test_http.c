/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: what a page sends is accepted, and everything else is refused. A request that takes
   long holds nobody up. */
#include "unit.h"

#include "http/request.h"
#include "http/server.h"
#include "io/output.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define HOST  "Host: 127.0.0.1:8000\r\n"

static const struct rp_http_guard guard = {TOKEN, 8000};

static int status_of(const char *text, struct rp_http_request *request)
{
    size_t used = 0;
    int status = rp_http_parse(text, strlen(text), &guard, request, &used);

    if (status == 200)
        assert_int_equal(used, strlen(text));
    return status;
}

static void a_request_of_the_page_is_accepted(void **state)
{
    struct rp_http_request r;

    UNUSED_STATE(state);
    assert_int_equal(status_of("GET /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", &r), 200);
    assert_string_equal(r.path, "");
    assert_string_equal(r.query, "");
    assert_false(r.head);
    assert_int_equal(status_of("HEAD /" TOKEN "/tile?z=1&i=2 HTTP/1.1\r\nhOST:  localhost:8000 \r\n"
                               "Origin: http://127.0.0.1:8000\r\nSec-Fetch-Site: same-origin\r\n"
                               "Accept: */*\r\n\r\n",
                               &r),
                     200);
    assert_string_equal(r.path, "tile");
    assert_string_equal(r.query, "z=1&i=2");
    assert_true(r.head);
}

/* The closest type counts, and without Accept any type does. */
static void media_types_have_the_weight_that_accept_gives_them(void **state)
{
    static const struct {
        const char *accept;
        double plain, open;
    } cases[] = {
        {"", 1, 1},
        {"Accept: */*\r\n", 1, 1},
        {"Accept: text/plain\r\n", 1, 0},
        {"Accept: text/*;q=0.5, */*;q=0.1\r\n", 0.5, 0.1},
        {"Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,"
         "*/*;q=0.1\r\n",
         0.5, 1},
        {"accept: TEXT/PLAIN;q=0.2 , Application/OpenMetrics-Text; q=0.3\r\n", 0.2, 0.3},
        {"Accept: text/plain;q=2, application/*;q=x\r\n", 0, 0},
    };
    char text[512];
    struct rp_http_request r;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST "%s\r\n", cases[i].accept);
        assert_int_equal(status_of(text, &r), 200);
        assert_float_equal(rp_http_weight(&r, "text/plain"), cases[i].plain, 1e-9);
        assert_float_equal(rp_http_weight(&r, "application/openmetrics-text"), cases[i].open, 1e-9);
    }
}

static void what_others_send_is_refused(void **state)
{
    static const struct {
        int status;
        const char *text;
    } cases[] = {
        {403, "GET /" TOKEN "/ HTTP/1.1\r\nHost: evil.example:8000\r\n\r\n"},
        {403, "GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:8001\r\n\r\n"},
        {403, "GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
        {403, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST "Origin: http://evil.example\r\n\r\n"},
        {403, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST "Origin: null\r\n\r\n"},
        {403, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST "Sec-Fetch-Site: cross-site\r\n\r\n"},
        {403, "GET / HTTP/1.1\r\n" HOST "\r\n"},
        {403, "GET /0123456789abcdef0123456789abcdee/ HTTP/1.1\r\n" HOST "\r\n"},
        {403, "GET /" TOKEN " HTTP/1.1\r\n" HOST "\r\n"},
        {403, "GET /" TOKEN "x/meta HTTP/1.1\r\n" HOST "\r\n"},
        {405, "POST /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n"},
        {405, "get /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n"},
        {414, "GET /" TOKEN "/a-path-that-is-longer-than-any-of-ours HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /" TOKEN "/ HTTP/1.1\r\n\r\n"},
        {400, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST HOST "\r\n"},
        {400, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n"},
        {400, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"},
        {400, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST " folded: line\r\n\r\n"},
        {400, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST "no colon\r\n\r\n"},
        {400, "GET /" TOKEN "/ HTTP/1.1\n" HOST "\r\n"},
        {400, "GET /" TOKEN "/ HTTP/1.0\r\n" HOST "\r\n"},
        {400, "GET /" TOKEN "/ extra HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http://127.0.0.1:8000/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /" TOKEN "/\x01 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "\r\n\r\n"},
        {0, "GET /" TOKEN "/ HTTP/1.1\r\n" HOST},
        {0, ""},
    };
    struct rp_http_request r;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (status_of(cases[i].text, &r) != cases[i].status)
            fail_msg("case %zu is %d, not %d: %s", i, status_of(cases[i].text, &r), cases[i].status,
                     cases[i].text);
}

static void a_request_without_end_is_refused(void **state)
{
    static char text[RP_HTTP_REQUEST_MOST];
    struct rp_http_request r;
    size_t used;

    UNUSED_STATE(state);
    memset(text, 'a', sizeof text);
    assert_int_equal(rp_http_parse(text, sizeof text - 1, &guard, &r, &used), 0);
    assert_int_equal(rp_http_parse(text, sizeof text, &guard, &r, &used), 431);
}

/* ------------------------------------------------------------------ two requests at a time */

struct busy {
    struct rp_http_server server;
    sem_t listens, fast_is_done;
    unsigned port;
    enum rp_code code;
};

/* "slow" ends only after "fast" was answered. */
static enum rp_code answer_busy(void *user, const struct rp_http_request *request,
                                struct rp_out *body, const char **type, struct rp_err *err)
{
    struct busy *b = user;
    struct timespec until;

    (void)type;
    if (!strcmp(request->path, "fast"))
        sem_post(&b->fast_is_done);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    if (!strcmp(request->path, "slow") && sem_timedwait(&b->fast_is_done, &until))
        return rp_err_set(err, RP_IO, "nobody else was answered");
    rp_out_printf(body, "%s is done", request->path);
    return RP_OK;
}

static bool is_slow(void *user, const struct rp_http_request *request)
{
    (void)user;
    return !strcmp(request->path, "slow");
}

static void busy_listens(void *user, const char *address)
{
    struct busy *b = user;

    b->port = (unsigned)strtoul(strrchr(address, ':') + 1, NULL, 10);
    sem_post(&b->listens);
}

static void *serve_busy(void *user)
{
    struct busy *b = user;

    b->code = rp_http_serve(&b->server, NULL);
    return NULL;
}

/* Sends requests for paths, one behind the other. */
static int ask_busy(unsigned port, const char *const *paths, size_t n)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    for (size_t i = 0; i < n; i++)
        assert_true(dprintf(fd, "GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", paths[i], port) >
                    0);
    return fd;
}

/* Reads until the answers have this text. */
static void expect_text(int fd, const char *wanted, char *out, size_t size)
{
    size_t used = strlen(out);
    ssize_t n = 1;

    while (!strstr(out, wanted) && n > 0 && used + 1 < size) {
        n = read(fd, out + used, size - used - 1);
        used += n > 0 ? (size_t)n : 0;
        out[used] = '\0';
    }
    if (!strstr(out, wanted))
        fail_msg("no '%s' in: %s", wanted, out);
}

static void a_slow_request_holds_nobody_up(void **state)
{
    static const char *const slow[] = {"slow", "next"}, *const fast[] = {"fast"};
    struct busy b = {.server = {.any_user = true,
                                .answer = answer_busy,
                                .slow = is_slow,
                                .ready = busy_listens,
                                .user = &b}};
    char first[4096] = "", second[4096] = "";
    pthread_t thread;
    int stop[2], fds[2];

    UNUSED_STATE(state);
    assert_int_equal(pipe(stop), 0);
    b.server.stop_fd = stop[0];
    sem_init(&b.listens, 0, 0);
    sem_init(&b.fast_is_done, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, serve_busy, &b), 0);
    sem_wait(&b.listens);
    fds[0] = ask_busy(b.port, slow, 2);
    fds[1] = ask_busy(b.port, fast, 1);
    expect_text(fds[1], "fast is done", second, sizeof second);
    expect_text(fds[0], "next is done", first, sizeof first);
    assert_non_null(strstr(first, "slow is done"));
    assert_true(strstr(first, "slow is done") < strstr(first, "next is done"));
    assert_int_equal(write(stop[1], "", 1), 1);
    pthread_join(thread, NULL);
    assert_int_equal(b.code, RP_OK);
    for (size_t i = 0; i < 2; i++) {
        close(stop[i]);
        close(fds[i]);
    }
}

int test_http(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_of_the_page_is_accepted),
        cmocka_unit_test(media_types_have_the_weight_that_accept_gives_them),
        cmocka_unit_test(what_others_send_is_refused),
        cmocka_unit_test(a_request_without_end_is_refused),
        cmocka_unit_test(a_slow_request_holds_nobody_up)};

    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
