/* SPDX-License-Identifier: Apache-2.0 */
/* Puts operators in 16 bits. torch.autocast has its own lists, so a dispatch mode gives exactly
   these operators. */
#include "opt/export/exports.h"

#include <string.h>

static const char cast_class[] =
    "from torch.utils._python_dispatch import TorchDispatchMode\n"
    "from torch.utils._pytree import tree_map\n"
    "\n"
    "\n"
    "class CastOperators(TorchDispatchMode):\n"
    "    \"\"\"Runs these operators, forward and backward, in 16 bits, and gives their results back in 32.\"\"\"\n"
    "\n"
    "    def __init__(self, operators=OPERATORS, dtype=DTYPE):\n"
    "        super().__init__()\n"
    "        self.operators, self.dtype = operators, dtype\n"
    "\n"
    "    def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n"
    "        kwargs = kwargs or {}\n"
    "        if func._schema.name not in self.operators:\n"
    "            return func(*args, **kwargs)\n"
    "\n"
    "        def cast(to, given):\n"
    "            return lambda x: x.to(to) if isinstance(x, torch.Tensor) and x.dtype == given else x\n"
    "\n"
    "        down, up = cast(self.dtype, torch.float32), cast(torch.float32, self.dtype)\n"
    "        return tree_map(up, func(*tree_map(down, args), **tree_map(down, kwargs)))\n";

static bool has_precision_move(const struct rp_opt_plan *plan)
{
    for (size_t i = 0; i < plan->nmoves; i++)
        if (plan->moves[i].family == RP_OPT_PRECISION)
            return true;
    return false;
}

static bool autocast_fits(const struct rp_opt_plan *plan)
{
    return plan->source == RP_OPT_TORCH && (plan->ncasts > 0 || has_precision_move(plan));
}

/* Returns the format of the move, which is one of two for every device. */
static const char *dtype_of(const struct rp_opt_plan *plan)
{
    for (size_t i = 0; i < plan->nmoves; i++)
        if (plan->moves[i].family == RP_OPT_PRECISION && strstr(plan->moves[i].what_if, "fp16"))
            return "float16";
    return "bfloat16";
}

static void autocast_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    const char *dtype = dtype_of(plan);

    rp_out_printf(to,
                  "\"\"\"Operators to run in %s, found by 'reprise optimize'. Works with stock "
                  "PyTorch 2.0 or newer.\n\n",
                  dtype);
    rp_opt_write_times(plan, to, "");
    rp_out_printf(
        to,
        "\nWith PyTorch's own lists of operators%s:\n\n"
        "    with torch.autocast(\"cuda\", dtype=torch.%s):\n"
        "        loss = loss_function(model(input), target)\n",
        strcmp(dtype, "float16") == 0 ? ", and a torch.amp.GradScaler for the backward pass" : "",
        dtype);
    if (plan->ncasts)
        rp_out_text(to,
                    "\nExactly those below (Python code runs in every operator and costs the host "
                    "time: to try accuracy,\nor to capture in a CUDA graph):\n\n"
                    "    with cast_operators.CastOperators():\n"
                    "        loss = loss_function(model(input), target)\n"
                    "        loss.backward()\n");
    rp_out_text(to, "\"\"\"\n");
    if (plan->ncasts) {
        rp_out_printf(to, "import torch\n\nDTYPE = torch.%s\nOPERATORS = {\n", dtype_of(plan));
        for (size_t i = 0; i < plan->ncasts; i++) {
            rp_out_text(to, "    ");
            rp_out_escaped(to, RP_IN_PYTHON, plan->casts[i].op);
            rp_out_printf(to, ",  # %.3f ms a step, %.3f then\n",
                          (double)plan->casts[i].now_ns / 1e6,
                          (double)plan->casts[i].then_ns / 1e6);
        }
        rp_out_text(to, "}\n\n");
        rp_out_text(to, cast_class);
    }
}

const struct rp_exporter rp_exporter_autocast = {.name = "autocast",
                                                 .file = "cast_operators.py",
                                                 .stock = true,
                                                 .works_with = "PyTorch 2.0 or newer",
                                                 .summary = "operators that gain in 16 bits",
                                                 .fits = autocast_fits,
                                                 .write = autocast_write};
