#include "meet.h"

#include <reprise/record.h>

int main(int argc, char **argv)
{
    for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) {
        RP_SCOPE("step");
        if (i == 1)
            meet();
    }
    return 0;
}
