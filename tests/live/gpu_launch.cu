/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch costs the host: batches of an empty kernel that fit into the queue, on one core.
 * Prints nanoseconds a launch: the fastest batch, the fastest tenth, the median.
 */
#include <algorithm>
#include <cstdio>
#include <sched.h>
#include <time.h>
#include <vector>

__global__ void tiny(int *p)
{
    if (p)
        *p = 1;
}

static double now_ns()
{
    timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main()
{
    const int launches = 256, batches = 400;
    std::vector<double> ns;
    cpu_set_t one;

    for (int i = 0; i < 1000; i++)
        tiny<<<1, 32>>>(nullptr);
    cudaDeviceSynchronize();
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (int k = 0; k < batches; k++) {
        double begin = now_ns();

        for (int i = 0; i < launches; i++)
            tiny<<<1, 32>>>(nullptr);
        ns.push_back((now_ns() - begin) / launches);
        if (cudaDeviceSynchronize() != cudaSuccess)
            return 1;
    }
    std::sort(ns.begin(), ns.end());
    printf("%.0f %.0f %.0f\n", ns[0], ns[batches / 10], ns[batches / 2]);
    return 0;
}
