/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are difficult to record: `hosts MODE`. Each must print and exit as without a
 * recorder; check_hosts compares both and checks the recording.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <reprise/record.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

static void work(const char *name, int n)
{
    for (int i = 0; i < n; i++) {
        RP_RANGE_BEGIN(name);
        RP_RANGE_END();
    }
}

static int wait_for(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* -------------------------------------------------------------------------- processes */

static int do_fork(char **argv)
{
    (void)argv;
    work("parent", 100);
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();

        if (!child) {
            work("child", 100);
            exit(3);
        }
        if (wait_for(child) != 3)
            return 1;
    }
    work("parent", 100);
    return 0;
}

static void *fork_in_thread(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();

        if (!child) {
            work("child", 10);
            _exit(0);
        }
        wait_for(child);
    }
    return unused;
}

/* While another thread records, so that a lock would be held in the child. */
static int do_fork_threads(char **argv)
{
    pthread_t threads[3];

    (void)argv;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, fork_in_thread, NULL);
    work("parent", 200000);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* A fork that bypasses pthread_atfork handlers. */
static int do_raw_fork(char **argv)
{
    (void)argv;
    work("parent", 300000); /* several chunks, one of them to be unmapped */
    for (int i = 0; i < 5; i++) {
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

        if (!child) {
            work("child", 20000);
            usleep(150000);
            work("child", 20000);
            _exit(0);
        }
        work("parent", 1000);
        if (wait_for(child))
            return 1;
    }
    return 0;
}

static void *begin_late(void *unused)
{
    work("thread", 1);
    return unused;
}

/* Processes end while a thread of theirs records its first event. */
static int do_short_lives(char **argv)
{
    (void)argv;
    work("parent", 1);
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        pthread_t thread;

        if (!child) {
            pthread_create(&thread, NULL, begin_late, NULL);
            usleep((unsigned)i * 5);
            _exit(0);
        }
        if (wait_for(child))
            return 1;
    }
    return 0;
}

static int do_vfork(char **argv)
{
    char *const words[] = {argv[0], "work", "spawned", "50", NULL};

    work("parent", 100);
    for (int i = 0; i < 3; i++) {
        pid_t child = vfork();

        if (!child) {
            execv(argv[0], words);
            _exit(9);
        }
        if (wait_for(child))
            return 1;
        work("parent", 100);
    }
    return 0;
}

static int do_spawn(char **argv)
{
    char *const words[] = {argv[0], "work", "spawned", "50", NULL};
    pid_t child;

    work("parent", 100);
    for (int i = 0; i < 3; i++)
        if (posix_spawn(&child, argv[0], NULL, NULL, words, environ) || wait_for(child))
            return 1;
    return 0;
}

static int do_exec(char **argv)
{
    work("before", 100);
    execl(argv[0], argv[0], "work", "after", "100", (char *)NULL);
    return 9;
}

static int do_daemon(char **argv)
{
    (void)argv;
    work("parent", 10);
    fflush(NULL);
    if (fork())
        _exit(0);
    setsid();
    if (fork())
        _exit(0);
    for (int fd = 0; fd < 256; fd++)
        close(fd);
    if (chdir("/"))
        return 1;
    work("daemon", 1000);
    return 0;
}

/* Children without a range of their own, as a data loader's. */
static int do_workers(char **argv)
{
    pid_t children[2];

    (void)argv;
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i])
            continue;
        usleep(20000);
        for (int k = 0; k < 1000; k++) {
            char *volatile block = malloc((size_t)k * 100);

            free(block);
        }
        usleep(250000);
        exit(0);
    }
    return wait_for(children[0]) + wait_for(children[1]);
}

static int clone_child(void *unused)
{
    work("clone", 30000);
    return unused ? 1 : 7;
}

/* The child's only thread ends by the bare system call, with the value that the function returns.
 */
static int do_clone(char **argv)
{
    size_t size = 256 << 10;
    char *stack = malloc(size);
    int failed = 0;

    (void)argv;
    work("parent", 100);
    for (int i = 0; i < 20; i++) {
        pid_t child = clone(clone_child, stack + size, SIGCHLD, NULL);

        failed += child < 0 || wait_for(child) != 7;
    }
    return failed;
}

/* The same for the process itself. */
static int do_bare_exit(char **argv)
{
    (void)argv;
    work("bare", 1000);
    syscall(SYS_exit, 5);
    return 0;
}

/* -------------------------------------------------------------------------- threads */

static void *outlive(void *unused)
{
    for (;;)
        work("outlives", 100);
    return unused;
}

static int do_outlive(char **argv)
{
    pthread_t thread;

    (void)argv;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, NULL, outlive, NULL);
    usleep(30000);
    return 5;
}

static pthread_barrier_t all_there;

static void *meet(void *unused)
{
    work("many", 10);
    pthread_barrier_wait(&all_there);
    work("many", 10);
    return unused;
}

static int do_many_threads(char **argv)
{
    int n = atoi(argv[2]);
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    pthread_barrier_init(&all_there, NULL, (unsigned)n);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], &attr, meet, NULL))
            return 1;
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static void at_end(void)
{
    sigset_t blocked;

    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    printf("at the end: %s\n", sigismember(&blocked, SIGTERM) ? "blocked" : "free");
}

static void *outlive_main(void *unused)
{
    usleep(20000);
    work("worker", 100);
    return unused;
}

/* The process ends with its last thread, which is not the main one. */
static int do_main_ends(char **argv)
{
    pthread_t thread;
    int n = atoi(argv[2]);

    atexit(at_end);
    work("main", 100);
    for (int i = 0; i < n; i++)
        pthread_create(&thread, NULL, outlive_main, NULL);
    pthread_exit(NULL);
}

/* By its state, which follows the name in parentheses. */
static int main_has_ended(void)
{
    char text[256] = "", *state;
    int fd = open("/proc/self/stat", O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);

    close(fd);
    state = n > 0 ? strrchr(text, ')') : NULL;
    return state && state[2] == 'Z';
}

/* The main thread is gone, a worker waits: the process must still obey signals. */
static void *wait_for_signal(void *unused)
{
    work("waits", 10);
    while (!main_has_ended())
        usleep(1000);
    fputs("waiting\n", stdout);
    fflush(stdout);
    for (;;)
        pause();
    return unused;
}

static int do_main_gone(char **argv)
{
    pthread_t thread;

    (void)argv;
    pthread_create(&thread, NULL, wait_for_signal, NULL);
    pthread_exit(NULL);
}

static int do_count_threads(char **argv)
{
    FILE *f;
    char line[128];

    (void)argv;
    work("main", 100000);
    usleep(250000);
    f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "SigPnd", 6) || !strncmp(line, "SigBlk", 6))
            fputs(line, stdout);
    return 0;
}

static pthread_key_t key;

static void late(void *unused)
{
    (void)unused;
    work("late", 1);
}

static void *end_late(void *unused)
{
    pthread_setspecific(key, &key);
    return unused;
}

/* Ranges from the destructors of a thread, after the recorder's own. */
static int do_late(char **argv)
{
    pthread_t thread;

    (void)argv;
    pthread_key_create(&key, late);
    for (int i = 0; i < 200; i++) {
        pthread_create(&thread, NULL, end_late, NULL);
        pthread_join(thread, NULL);
    }
    return 0;
}

/* -------------------------------------------------------------------------- signals */

static volatile sig_atomic_t handled;

static void on_alarm(int number)
{
    (void)number;
    RP_MARK("handler");
    handled++;
}

static int do_handlers(char **argv)
{
    struct itimerval every = {{0, 200}, {0, 200}};

    (void)argv;
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every, NULL);
    while (handled < 500)
        work("interrupted", 10000);
    return 0;
}

/* The first event of all comes from a handler, most likely in the middle of an allocation. */
static int do_only_handlers(char **argv)
{
    struct itimerval every = {{0, 100}, {0, 100}};

    (void)argv;
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every, NULL);
    for (size_t i = 0; handled < 200; i++) {
        void *memory[64];

        for (int k = 0; k < 64; k++)
            memory[k] = malloc(2000 + (i * 67 + (size_t)k * 131) % 90000);
        for (int k = 0; k < 64; k++)
            free(memory[k]);
    }
    return 0;
}

/* -------------------------------------------------------------------------- limits */

/* A user who may not write to the folder. */
static int do_nobody(char **argv)
{
    work("before", 10);
    if (setgid(65534) || setuid(65534))
        return 77;
    return do_many_threads(argv);
}

/* Until its input ends; a dot for each. */
static int do_steps(char **argv)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    (void)argv;
    while (!poll(&input, 1, 0)) {
        RP_RANGE_BEGIN("step");
        usleep(20000);
        RP_RANGE_END();
        if (write(STDOUT_FILENO, ".", 1) != 1)
            return 1;
    }
    return 0;
}

static int do_no_files(char **argv)
{
    struct rlimit limit = {32, 32};
    int last = -1, fd;

    (void)argv;
    setrlimit(RLIMIT_NOFILE, &limit);
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    work("no files", 200000);
    printf("last descriptor %d\n", last);
    return 0;
}

static int do_file_size(char **argv)
{
    struct rlimit limit = {(rlim_t)atol(argv[2]), RLIM_INFINITY};

    setrlimit(RLIMIT_FSIZE, &limit);
    work("small files", 200000);
    return 0;
}

static int do_memory(char **argv)
{
    struct rlimit limit = {64 << 20, 64 << 20};

    (void)argv;
    setrlimit(RLIMIT_AS, &limit);
    work("little memory", 200000);
    return 0;
}

static int do_close_all(char **argv)
{
    (void)argv;
    work("before", 1000);
    for (int i = 0; i < 50; i++) {
        for (int fd = 3; fd < 200; fd++)
            close(fd);
        work("closed", 20000);
    }
    return 0;
}

/* The numbers that open gives, while the recorder creates its files. */
static int do_descriptors(char **argv)
{
    int different = 0;

    (void)argv;
    for (int i = 0; i < 4000; i++) {
        int fd;

        if (i % 100 == 0)
            for (fd = 3; fd < 300; fd++)
                close(fd);
        work("numbers", 500);
        fd = open("/dev/null", O_RDONLY);
        different += fd != 3;
        close(fd);
    }
    printf("%d other numbers\n", different);
    return 0;
}

static int do_chdir(char **argv)
{
    (void)argv;
    if (chdir("/"))
        return 1;
    work("elsewhere", 50000);
    return 0;
}

static int do_chroot(char **argv)
{
    work("before", 1000);
    if (chroot(argv[2]) || chdir("/"))
        return 77;
    work("inside", 50000);
    return 0;
}

static int do_remove(char **argv)
{
    char command[512];

    work("before", 1000);
    snprintf(command, sizeof command, "rm -rf '%s' || rm -rf '%s'", argv[2], argv[2]);
    if (system(command))
        return 1;
    work("gone", 200000);
    return 0;
}

/* [WAY [exit]]: a seccomp filter that allows little more than write and exit: other calls kill the
 * process. */
static int do_sandbox(char **argv)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};

    work("before", 1000);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 77;
    /* as libseccomp asks whether it can be for all threads, and does it: alone, or for all */
    const char *way = argv[2] ? argv[2] : "prctl";
    long how = !strcmp(way, "thread") ? 0 : SECCOMP_FILTER_FLAG_TSYNC;
    struct timespec end, now;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) != -1 ||
        errno != EFAULT)
        return 78;
    if (!strcmp(way, "prctl") ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                              : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, how, &program))
        return 77;
    work("sandboxed", 200000);
    clock_gettime(CLOCK_MONOTONIC, &end); /* what is due every tenth of a second would be seen */
    end.tv_sec++;
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    if (write(STDOUT_FILENO, "computed\n", 9) != 9)
        _exit(1);
    if (argv[2] && argv[3]) /* what libraries do at the exit is done */
        exit(6);
    _exit(6);
}

/* Cuts the ledger of the recording in this folder, as any process of the user can. */
static int do_cut(char **argv)
{
    char path[4096];
    struct dirent *entry;
    DIR *dir = opendir(argv[2]);

    work("before", 1000);
    while (dir && (entry = readdir(dir))) {
        snprintf(path, sizeof path, "%s/%s", argv[2], entry->d_name);
        if (!strncmp(entry->d_name, ".ledger_", 8) && truncate(path, 0))
            return 1;
    }
    if (dir)
        closedir(dir);
    work("after", 1000);
    return 0;
}

/* Only read, write and exit are left, and no clock. */
static int do_strict(char **argv)
{
    int n = atoi(argv[2]);

    work("before", n);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0))
        return 77;
    work("sandboxed", 1000);
    if (write(STDOUT_FILENO, "computed\n", 9) == 9)
        syscall(SYS_exit, 5);
    syscall(SYS_exit, 1);
    return 0;
}

/* -------------------------------------------------------------------------- input and output */

/* Threads of the program's own making: their stacks come and go, and none is the one of a thread.
 */
static ucontext_t main_context, green_context;
static volatile unsigned green_sum;

static void green_run(void)
{
    for (int i = 0; i < 100; i++) {
        for (unsigned k = 0; k < 2000; k++)
            green_sum += k;
        swapcontext(&green_context, &main_context);
    }
}

static int do_green(char **argv)
{
    enum { STACK = 64 << 10 };

    (void)argv;
    for (int n = 0; n < 300; n++) {
        void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (stack == MAP_FAILED || getcontext(&green_context))
            return 1;
        green_context.uc_stack.ss_sp = stack;
        green_context.uc_stack.ss_size = STACK;
        green_context.uc_link = NULL;
        makecontext(&green_context, green_run, 0);
        for (int i = 0; i < 100; i++)
            swapcontext(&main_context, &green_context);
        munmap(stack, STACK);
    }
    printf("%u\n", green_sum);
    return 0;
}

static int do_cat(char **argv)
{
    char line[256];

    (void)argv;
    while (fgets(line, sizeof line, stdin)) {
        work("line", 1);
        fputs(line, stdout);
        fputs(line, stderr);
    }
    return 0;
}

static int do_work(char **argv)
{
    work(argv[2], atoi(argv[3]));
    return 0;
}

static int entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = -2;

    for (; dir && readdir(dir); n++)
        continue;
    if (dir)
        closedir(dir);
    return n;
}

/* meet FOLDER N: N such processes are recorded at the same time, whenever each begins. */
static int do_meet(char **argv)
{
    char path[4096];

    work("launched", 20);
    snprintf(path, sizeof path, "%s/%d", argv[2], getpid());
    close(open(path, O_WRONLY | O_CREAT, 0600));
    while (entries(argv[2]) < atoi(argv[3]))
        usleep(1000);
    work("launched", 30);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(char **argv);
} modes[] = {{"fork", do_fork},
             {"fork_threads", do_fork_threads},
             {"raw_fork", do_raw_fork},
             {"vfork", do_vfork},
             {"spawn", do_spawn},
             {"exec", do_exec},
             {"daemon", do_daemon},
             {"outlive", do_outlive},
             {"many_threads", do_many_threads},
             {"late", do_late},
             {"handlers", do_handlers},
             {"only_handlers", do_only_handlers},
             {"no_files", do_no_files},
             {"file_size", do_file_size},
             {"memory", do_memory},
             {"close_all", do_close_all},
             {"chdir", do_chdir},
             {"chroot", do_chroot},
             {"remove", do_remove},
             {"sandbox", do_sandbox},
             {"short_lives", do_short_lives},
             {"cut", do_cut},
             {"strict", do_strict},
             {"workers", do_workers},
             {"nobody", do_nobody},
             {"steps", do_steps},
             {"clone", do_clone},
             {"bare_exit", do_bare_exit},
             {"main_ends", do_main_ends},
             {"main_gone", do_main_gone},
             {"count_threads", do_count_threads},
             {"descriptors", do_descriptors},
             {"green", do_green},
             {"cat", do_cat},
             {"work", do_work},
             {"meet", do_meet}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (!strcmp(argv[1], modes[i].name))
            return modes[i].run(argv);
    return 2;
}
