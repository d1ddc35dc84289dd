/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The direction of a copy, as far as its name tells. */
enum rp_copy_way {
    RP_COPY_UNKNOWN,
    RP_COPY_TO_DEVICE,
    RP_COPY_TO_HOST,
    RP_COPY_INSIDE, /* within the memory of a device */
    RP_COPY_BETWEEN /* devices */
};

/* Finds the direction in the name that a profiler gives a copy: "Memcpy HtoD (Pinned -> Device)",
   "MemcpyD2H", "CopyHostToDevice". */
enum rp_copy_way rp_copy_way(const char *name);
