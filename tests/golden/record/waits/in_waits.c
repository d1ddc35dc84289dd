#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Until the main thread sleeps in pthread_join, by its state, which follows the name in
 * parentheses. */
static void await_main(void)
{
    char path[64], text[256] = "", *state = text;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    while (state[0] != 'S') {
        int fd = open(path, O_RDONLY);
        ssize_t n = read(fd, text, sizeof text - 1);

        close(fd);
        text[n > 0 ? n : 0] = '\0';
        state = strrchr(text, ')');
        state = state ? state + 2 : text;
    }
}

static void *work(void *blocks)
{
    await_main();
    usleep(20000);
    for (int i = 0; i < 1000; i++) {
        char *p = malloc(1000);

        memset(p, i, 1000);
        ((char **)blocks)[i] = realloc(p, 2000);
    }
    return blocks;
}

int main(void)
{
    static char *blocks[1000];
    pthread_t thread;

    pthread_create(&thread, NULL, work, blocks);
    pthread_join(thread, NULL);
    for (int i = 0; i < 1000; i += 2)
        free(blocks[i]);
    return blocks[1][1] != 0 && write(1, "ok\n", 3) == 3 ? 0 : 1;
}
