#include <reprise/record.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    static char *const words[] = {"true", NULL};
    int status;

    RP_MARK("parent");
    prctl(PR_SET_NAME, "trainer", 0, 0, 0);
    if (fork() == 0) {
        RP_MARK("child");
        execv("/bin/true", words);
        _exit(1);
    }
    wait(&status);
    return status != 0;
}
