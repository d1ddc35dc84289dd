/* SPDX-License-Identifier: Apache-2.0 */
/* Writes regions of a step that become CUDA graphs. */
#include "opt/export/exports.h"

#include <string.h>

static bool cuda_graphs_fits(const struct rp_opt_plan *plan)
{
    return plan->source == RP_OPT_TORCH && plan->nregions > 0;
}

static const char whole_step[] =
    "static_input, static_target = input.clone(), target.clone()  # a batch as it is trained with\n"
    "stream = torch.cuda.Stream()\n"
    "stream.wait_stream(torch.cuda.current_stream())\n"
    "with torch.cuda.stream(stream):  # warm up: what is allocated now is not captured\n"
    "    for _ in range(3):\n"
    "        optimizer.zero_grad(set_to_none=True)\n"
    "        loss_function(model(static_input), static_target).backward()\n"
    "        optimizer.step()\n"
    "torch.cuda.current_stream().wait_stream(stream)\n"
    "\n"
    "graph = torch.cuda.CUDAGraph()\n"
    "optimizer.zero_grad(set_to_none=True)\n"
    "with torch.cuda.graph(graph):\n"
    "    static_loss = loss_function(model(static_input), static_target)\n"
    "    static_loss.backward()\n"
    "    optimizer.step()\n"
    "\n"
    "for input, target in batches:  # of the same shapes\n"
    "    static_input.copy_(input)\n"
    "    static_target.copy_(target)\n"
    "    graph.replay()\n";
static const char model_only[] =
    "# Forward and backward of the model; the rest of the step stays as it is.\n"
    "model = torch.cuda.make_graphed_callables(model, (sample_input,))\n";
static const char optimizer_only[] =
    "# The optimizer: gradients must stay where they are, so keep them between steps.\n"
    "optimizer.zero_grad(set_to_none=False)\n"
    "graph = torch.cuda.CUDAGraph()\n"
    "with torch.cuda.graph(graph):  # after three steps as usual\n"
    "    optimizer.step()\n"
    "\n"
    "loss.backward()\n"
    "graph.replay()\n"
    "optimizer.zero_grad(set_to_none=False)\n";

static bool has_region(const struct rp_opt_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->nregions; i++)
        if (!strcmp(plan->regions[i].name, name))
            return true;
    return false;
}

static void cuda_graphs_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    rp_out_text(to,
                "# CUDA graphs, found by 'reprise optimize': a pattern to adapt. Works with stock "
                "PyTorch 1.10 or newer.\n");
    rp_opt_write_times(plan, to, "# ");
    rp_out_text(to, "# regions:");
    for (size_t i = 0; i < plan->nregions; i++) {
        rp_out_text(to, i ? ", " : " ");
        rp_out_escaped(to, RP_IN_LINE, plan->regions[i].name);
    }
    rp_out_text(to,
                "\n# Shapes must not change, nothing may wait for the device inside, and Adam and "
                "AdamW need capturable=True.\nimport torch\n\n");
    if (has_region(plan, "step"))
        rp_out_text(to, whole_step);
    else if (has_region(plan, "forward") || has_region(plan, "backward"))
        rp_out_text(to, model_only);
    if (!has_region(plan, "step") && has_region(plan, "optimizer"))
        rp_out_text(to, optimizer_only);
}

const struct rp_exporter rp_exporter_cuda_graphs = {.name = "cuda-graphs",
                                                    .file = "cuda_graphs.py",
                                                    .stock = true,
                                                    .works_with = "PyTorch 1.10 or newer",
                                                    .summary =
                                                        "how to capture the regions of the plan",
                                                    .fits = cuda_graphs_fits,
                                                    .write = cuda_graphs_write};
