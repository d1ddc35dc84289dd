/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What names of operators, calls and kernels mean for a simulation, by rows in names.c. Classes of
   kernels are in whatif/kernels.c, causes of host time in facts/host/signs.h. */
#include <stdbool.h>

enum rp_sim_meaning {
    RP_SIM_TORCH_OP,
    RP_SIM_STEP_MARK,
    RP_SIM_GRADIENT_READY,
    RP_SIM_COPIES_BACK,     /* ... from a bucket into gradients */
    RP_SIM_REDUCER,         /* DistributedDataParallel works */
    RP_SIM_READS_CONDITION, /* the host branches on a value of the device */
    RP_SIM_LAUNCHES_GRAPH,
    RP_SIM_HAS_BIAS,        /* a product that adds one */
    RP_SIM_CONVOLVES,       /* an operator that a compiler calls unchanged */
    RP_SIM_PARTS_ATTENTION, /* attention as one operator after the other */
    RP_SIM_GENERATED,       /* a kernel that a compiler generated */
    RP_SIM_OWN_KERNEL,      /* a kernel of PyTorch, not of a library */
    RP_SIM_ADAM,            /* mark of an optimizer */
    RP_SIM_ADAMW,
    RP_SIM_SGD,
    RP_SIM_FOREACH, /* operator on all parameters at once */
    RP_SIM_FUSED,   /* update in one operator */
    RP_SIM_READS,   /* the host reads a value */
    RP_SIM_POWERS,  /* factors of an update are computed on the device */
    RP_SIM_DECAYS   /* a buffer is multiplied */
};

bool rp_sim_means(const char *name, enum rp_sim_meaning meaning);
