/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions compute in another layout than the tensors have. */
#include "explain/findings/finding.h"

static void layout_transposes_find(struct rp_findings *f)
{
    const int64_t *category_ns = rp_findings_lead(f)->category_ns;
    int64_t ns = category_ns[RP_CATEGORY_LAYOUT];
    bool convolves =
        category_ns[RP_CATEGORY_CONVOLUTION] > 0; /* otherwise the name means another layout */
    struct rp_report_finding *finding = convolves ? rp_findings_add_compute(f, 0, ns) : NULL;

    if (finding)
        RP_SAY(f, finding, "rank %d: %s of the %s that convolutions take, transposes included",
               rp_findings_lead_number(f), rp_findings_time(f, ns),
               rp_findings_time(f, rp_ns_sum(ns, category_ns[RP_CATEGORY_CONVOLUTION])));
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL,
     .text = "keep images in the layout of the convolutions, channels last, from the input on"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "model.to(memory_format=torch.channels_last), and the inputs: tensors then have the "
             "layout in which the convolutions compute"},
    {RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "PYTORCH_MIOPEN_SUGGEST_NHWC=1 with it: without, PyTorch calls MIOpen with NCHW"},
    {RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "lax.conv_general_dilated(..., dimension_numbers=('NHWC', 'HWIO', 'NHWC')): the "
             "layout of the library"},
    {RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "data_format='channels_last' in all layers"},
};

const struct rp_finding rp_finding_layout_transposes = {
    .id = "layout-transposes",
    .kinds = {{"", "kernels change the layout of tensors before and after convolutions"}},
    .condition = "device work of convolutions was recorded",
    .cost = "device time of the category `layout`; an upper bound: a first change of the input "
            "remains",
    .find = layout_transposes_find,
    RP_ADVICE(advice),
};
