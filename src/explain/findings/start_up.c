/* SPDX-License-Identifier: Apache-2.0 */
/* What happens once, and is not repeated by later steps. */
#include "explain/findings/finding.h"

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK,
     .text = "nothing in a step: it happens once. Begin recording after a few steps"},
    {RP_ADVISE_LOOK, .system = RP_KEY_YES,
     .text = "nothing in a step: it happens once. Begin recording after a few steps"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "nothing in a step: it happens once. torch.profiler.schedule(wait=1, warmup=3, "
             "active=3) leaves it out"},
    {RP_ADVISE_LOOK, .frameworks = FW(JAX),
     .text = "nothing in a step: it happens once. Call jax.profiler.start_trace() after the "
             "first steps"},
    {RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "nothing in a step: it happens once. "
             "tf.keras.callbacks.TensorBoard(profile_batch=(10, 15)) leaves it out"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .ours = RP_KEY_YES, .text = "nothing in a step: it happens once, in the first steps"},
    {RP_ADVISE_LOOK, .modes = MODE(SERVING),
     .text = "nothing in a step: it happens once. Start the profile after a few requests"},
    {RP_ADVISE_LOOK, .frameworks = FW(NATIVE) | FW(OPENCL),
     .text = "nothing in a step: it happens once. 'reprise record --steps 10:5' or "
             "--start-after leaves it out"},
    {RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "CL_PROGRAM_BINARIES and clCreateProgramWithBinary keep what clBuildProgram compiled"},
};

const struct rp_finding rp_finding_start_up = {
    .id = "start-up",
    .kinds = {{"", "initialisation and first use, which later steps do not repeat"}},
    .idle = 1u << RP_GAP_START_UP,
    .find = rp_findings_idle,
    RP_ADVICE(advice),
};
