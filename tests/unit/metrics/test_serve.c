/* SPDX-License-Identifier: Apache-2.0 */
/* The server of metrics: which processes an answer has after some of them have ended. */
#include "unit.h"

#include <arpa/inet.h>
#include <glob.h>
#include <netinet/in.h>
#include <pthread.h>
#include <reprise/metrics.h>
#include <reprise/metrics_calls.h>
#include <reprise/result.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], other[64];

static int make_folders(void **state)
{
    UNUSED_STATE(state);
    snprintf(folder, sizeof folder, "/tmp/reprise-serve-test-XXXXXX");
    snprintf(other, sizeof other, "/tmp/reprise-serve-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_non_null(mkdtemp(other));
    return setenv("REPRISE_METRICS_DIR", folder, 1);
}

static int remove_folders(void **state)
{
    UNUSED_STATE(state);
    return rmdir(folder) || rmdir(other);
}

/* ------------------------------------------------------------------ processes that count */

struct counting {
    pid_t pid;
    char path[128]; /* of its file */
};

static void count_two(void)
{
    RP_COUNT("two", 2);
}

static void count_three(void)
{
    RP_COUNT("three", 3);
}

/* A process that has counted, and runs until it is ended. */
static struct counting start(void (*count)(void))
{
    struct counting c;
    glob_t found;
    char byte;
    int pipes[2];

    assert_int_equal(pipe(pipes), 0);
    c.pid = fork();
    if (c.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* where an assertion fails */
        count();
        (void)!write(pipes[1], "x", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    close(pipes[0]);
    close(pipes[1]);
    snprintf(c.path, sizeof c.path, "%s/%d-*.metrics", folder, (int)c.pid);
    assert_int_equal(glob(c.path, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(c.path, sizeof c.path, "%s", found.gl_pathv[0]);
    globfree(&found);
    return c;
}

static void end(const struct counting *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
}

/* ------------------------------------------------------------------ servers */

struct serving {
    struct rp_metrics_server options;
    sem_t listens;
    unsigned port;
    int stop[2];
    pthread_t thread;
    enum rp_code code;
};

static void note_port(void *user, const char *address)
{
    struct serving *s = user;

    assert_string_equal(strrchr(address, '/'), "/metrics");
    s->port = (unsigned)strtoul(strrchr(address, ':') + 1, NULL, 10);
    sem_post(&s->listens);
}

static void *serve(void *user)
{
    struct serving *s = user;

    s->code = rp_metrics_call_serve(&s->options, NULL);
    return NULL;
}

#define HOUR_NS (INT64_C(3600) * 1000000000)

static void start_server(struct serving *s, const char *source, int64_t keep_ns, int clean)
{
    *s = (struct serving){.options = {.struct_size = sizeof s->options,
                                      .source = source,
                                      .keep_ns = keep_ns,
                                      .clean = clean,
                                      .ready = note_port,
                                      .user = s}};
    assert_int_equal(pipe(s->stop), 0);
    s->options.stop_fd = s->stop[0];
    sem_init(&s->listens, 0, 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    sem_wait(&s->listens);
}

static void stop_server(struct serving *s)
{
    assert_int_equal(write(s->stop[1], "", 1), 1);
    pthread_join(s->thread, NULL);
    assert_int_equal(s->code, RP_OK);
    close(s->stop[0]);
    close(s->stop[1]);
    sem_destroy(&s->listens);
}

/* The text of an answer. A second request, which is refused, marks its end. */
static char *ask(const struct serving *s)
{
    static const char last[] = "the metrics are at '/metrics'";
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)s->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t used = 0, room = 1 << 18;
    char *text = calloc(1, room);
    ssize_t n = 1;

    assert_non_null(text);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_true(dprintf(fd,
                        "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n"
                        "GET /other HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                        s->port, s->port) > 0);
    while (!strstr(text, last) && n > 0 && used + 1 < room) {
        n = read(fd, text + used, room - used - 1);
        used += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    assert_contains(text, "text/plain; version=0.0.4");
    assert_contains(text, last);
    return text;
}

static int count_in(const char *text, const char *name)
{
    char label[64];
    const char *at;

    snprintf(label, sizeof label, "name=\"%s\"", name);
    at = strstr(text, label);
    return at ? atoi(strstr(at, "} ") + 2) : 0;
}

/* What an answer has of the two processes; 0: not that one. */
static void assert_served(const struct serving *s, int two, int three)
{
    char *text = ask(s);

    assert_int_equal(count_in(text, "two"), two);
    assert_int_equal(count_in(text, "three"), three);
    free(text);
}

/* ------------------------------------------------------------------ tests */

/* The numbers of a process that ended are in one answer more, or as long as they are to be kept. A
   process that had ended before the first answer is in none. */
static void last_numbers_are_served_once(void **state)
{
    struct counting runs = start(count_two), ends = start(count_three);
    struct serving at_once, later, late;

    UNUSED_STATE(state);
    start_server(&at_once, NULL, 0, 0);
    start_server(&later, NULL, HOUR_NS, 0);
    start_server(&late, NULL, HOUR_NS, 0);
    assert_served(&at_once, 2, 3);
    assert_served(&later, 2, 3);
    end(&ends);
    assert_served(&at_once, 2, 3);
    assert_served(&later, 2, 3);
    for (int i = 0; i < 2; i++) {
        assert_served(&at_once, 2, 0);
        assert_served(&later, 2, 3);
        assert_served(&late, 2, 0);
    }
    assert_int_equal(unlink(ends.path), 0);
    assert_served(&later, 2, 0);
    stop_server(&at_once);
    stop_server(&later);
    stop_server(&late);
    end(&runs);
    assert_int_equal(unlink(runs.path), 0);
}

/* With `clean` the file is removed after that, also of a process that had ended before. */
static void files_are_removed_after_their_time(void **state)
{
    struct counting runs = start(count_two), ended = start(count_three);
    struct serving at_once, later;

    UNUSED_STATE(state);
    end(&ended);
    start_server(&at_once, NULL, 0, 1);
    start_server(&later, NULL, HOUR_NS, 1);
    for (int i = 0; i < 2; i++) {
        assert_served(&later, 2, 3);
        assert_int_equal(access(ended.path, F_OK), 0);
    }
    assert_served(&at_once, 2, 3);
    assert_int_equal(access(ended.path, F_OK), 0);
    assert_served(&at_once, 2, 0);
    assert_int_not_equal(access(ended.path, F_OK), 0);
    assert_served(&later, 2, 0);
    assert_int_equal(access(runs.path, F_OK), 0);
    stop_server(&at_once);
    stop_server(&later);
    end(&runs);
    assert_int_equal(unlink(runs.path), 0);
}

/* A file that is not found any more is read once more, and never removed. */
static void files_of_recordings_stay(void **state)
{
    struct counting runs = start(count_two), ends = start(count_three);
    struct serving s;

    UNUSED_STATE(state);
    start_server(&s, NULL, 0, 1);
    assert_served(&s, 2, 3);
    end(&ends);
    setenv("REPRISE_METRICS_DIR", other, 1);
    assert_served(&s, 2, 3);
    assert_served(&s, 2, 0);
    assert_served(&s, 2, 0);
    assert_int_equal(access(ends.path, F_OK), 0);
    setenv("REPRISE_METRICS_DIR", folder, 1);
    assert_served(&s, 2, 3); /* it was forgotten, and is found for the first time */
    assert_served(&s, 2, 0);
    assert_int_not_equal(access(ends.path, F_OK), 0);
    stop_server(&s);
    end(&runs);
    assert_int_equal(unlink(runs.path), 0);
}

/* A source that was named is in every answer, whether its processes run or not, until its files are
   removed. */
static void a_named_source_is_always_served(void **state)
{
    struct counting runs = start(count_two), ended = start(count_three);
    struct serving keeps, cleans;

    UNUSED_STATE(state);
    end(&ended);
    start_server(&keeps, folder, 0, 0);
    start_server(&cleans, folder, 0, 1);
    for (int i = 0; i < 3; i++)
        assert_served(&keeps, 2, 3);
    assert_served(&cleans, 2, 3);
    assert_served(&cleans, 2, 0);
    assert_served(&keeps, 2, 0);
    end(&runs);
    for (int i = 0; i < 3; i++)
        assert_served(&keeps, 2, 0);
    assert_int_equal(access(runs.path, F_OK), 0);
    stop_server(&keeps);
    stop_server(&cleans);
    assert_int_equal(unlink(runs.path), 0);
}

int test_serve(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(last_numbers_are_served_once),
                                       cmocka_unit_test(files_are_removed_after_their_time),
                                       cmocka_unit_test(files_of_recordings_stay),
                                       cmocka_unit_test(a_named_source_is_always_served)};

    return cmocka_run_group_tests_name("serve", tests, make_folders, remove_folders);
}
