/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts first by device, in one pass of counting; then the tasks of each device by time, with a
 * radix sort, the last digit first, as many digits as its latest time has. The tasks of one device
 * stay in the caches meanwhile. All passes are stable. A sort by comparison would take longer than
 * the simulation itself.
 */
#include "base/decides.h"
#include "sim/engine/overlay.h"

#include <stdlib.h>

#define BITS 11
RP_LIMIT(BITS, "bits of a digit",
         "a table of digits fits the cache; the order is the same with any");
#define DIGITS (1u << BITS)

struct timed {
    int64_t at_ns;
    uint32_t task;
};

/* Writes the tasks of a device to out, sorted by time; b is scratch space for n of them. */
static void sort_device(struct timed *a, struct timed *b, size_t n, uint32_t *out)
{
    int64_t last = 0;
    bool sorted = true;

    for (size_t i = 0; i < n; i++) {
        sorted &= a[i].at_ns >= last;
        last = a[i].at_ns > last ? a[i].at_ns : last;
    }
    for (int shift = 0; !sorted && shift < 8 * (int)sizeof last - 1 && last >> shift;
         shift += BITS) {
        struct timed *other = b;

        /* Sort by one digit, from a into b. */
        uint32_t count[DIGITS] = {0}, sum = 0, here;
        for (size_t i = 0; i < n; i++)
            count[(uint64_t)a[i].at_ns >> shift & (DIGITS - 1)]++;
        for (size_t i = 0; i < DIGITS; i++) {
            here = count[i];
            count[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++)
            b[count[(uint64_t)a[i].at_ns >> shift & (DIGITS - 1)]++] = a[i];

        b = a;
        a = other;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = a[i].task;
}

/* first: by device, where its tasks begin, and one more entry for the end. */
static void sort_all(const struct rp_overlay *o, const int64_t *at_ns, uint32_t *tasks, size_t n,
                     uint32_t *first, struct timed *a)
{
    size_t i, d, ndevices = o->graph->devices.n;
    uint32_t sum = 0;

    for (i = 0; i < n; i++)
        first[rp_overlay_task(o, tasks[i])->device]++;
    for (d = 0; d <= ndevices; d++) {
        sum += first[d];
        first[d] = sum;
    }
    for (i = n; i-- > 0;)
        a[--first[rp_overlay_task(o, tasks[i])->device]] =
            (struct timed){at_ns[tasks[i]], tasks[i]};
    for (d = 0; d < ndevices; d++)
        sort_device(a + first[d], a + n, first[d + 1] - first[d], tasks + first[d]);
}

enum rp_code rp_device_order(const struct rp_overlay *o, const int64_t *at_ns, uint32_t *tasks,
                             size_t n, struct rp_err *err)
{
    uint32_t *first = calloc(o->graph->devices.n + 1, sizeof *first);
    struct timed *a = malloc((2 * n + 1) * sizeof *a);
    bool got = first && a;

    if (got && n)
        sort_all(o, at_ns, tasks, n, first, a);
    free(first);
    free(a);
    return got ? RP_OK : rp_err_nomem(err, "simulating");
}
