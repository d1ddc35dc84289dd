#include <reprise/record.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3;

    for (int i = 0; i < n; i++) {
        RP_SCOPE("step");
        RP_RANGE_BEGIN("forward");
        RP_RANGE_END();
        RP_COUNTER("loss", 1.0 / (i + 1));
    }
    RP_MARK("done");
    return 5;
}
