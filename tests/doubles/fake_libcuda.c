/* SPDX-License-Identifier: Apache-2.0 */
/* A double of libcuda.so.1: one context, and events that are complete when they are recorded. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuCtxGetCurrent(void **context)
{
    static int one;

    *context = &one;
    return 0;
}

int cuDeviceGetPCIBusId(char *to, int size, int device)
{
    return snprintf(to, (size_t)size, "0000:%02X:00.0", 0x1b + device) >= size;
}

int cuCtxSynchronize(void)
{
    return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static int now;
    int before = now;

    now = *mode;
    *mode = before;
    return 0;
}

int cuStreamIsCapturing(void *stream, int *status)
{
    *status = 0;
    return stream != NULL;
}

int cuEventCreate(struct timespec **event, unsigned flags)
{
    *event = malloc(sizeof **event);
    return flags != 0;
}

int cuEventRecord(struct timespec *event, void *stream)
{
    return stream || clock_gettime(CLOCK_MONOTONIC, event);
}

int cuEventQuery(const struct timespec *event)
{
    return event->tv_sec == 0;
}

int cuEventElapsedTime(float *ms, const struct timespec *from, const struct timespec *to)
{
    *ms = (float)((double)(to->tv_sec - from->tv_sec) * 1e3 +
                  (double)(to->tv_nsec - from->tv_nsec) * 1e-6);
    return 0;
}
