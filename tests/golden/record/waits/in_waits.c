#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *work(void *blocks)
{
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
