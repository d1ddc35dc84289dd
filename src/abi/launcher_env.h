/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Environment variables in which launchers give a process its rank: torchrun, Open MPI, PMIx, MPICH
 * and Intel MPI (PMI), MVAPICH, Slurm; and the variable by which a recorded process that learned
 * its rank while it ran passes it to processes that it starts. The first one that is a number is
 * used; inner launchers come first (torchrun under srun, mpirun in a Slurm job).
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#define RP_LAUNCHER_RANKS                                                                         \
    {                                                                                             \
        "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_ID", "MV2_COMM_WORLD_RANK", \
            "SLURM_PROCID", "REPRISE_RANK", NULL                                                  \
    }
#define RP_LAUNCHER_SIZES                                                                        \
    {                                                                                            \
        "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS", \
            "REPRISE_WORLD_SIZE", NULL                                                           \
    }
#define RP_LAUNCHER_LOCAL_RANKS                                        \
    {                                                                  \
        "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", \
            "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", NULL         \
    }
/* How often the launcher has restarted the job. */
#define RP_LAUNCHER_RESTARTS                                      \
    {                                                             \
        "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT", NULL \
    }

/* Returns the first of the variables that is a non-negative number, or -1. */
static inline int32_t rp_launcher_number(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        char *end = NULL;
        long value = text ? strtol(text, &end, 10) : -1;

        if (text && end != text && !*end && value >= 0 && value <= INT32_MAX)
            return (int32_t)value;
    }
    return -1;
}
