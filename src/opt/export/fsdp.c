/* SPDX-License-Identifier: Apache-2.0 */
/* FullyShardedDataParallel gathers and reduces one wrapped module at a time, so units should be
   about as large as the buckets. */
#include "opt/export/exports.h"

static const char fsdp_functions[] =
    "from torch import nn\n"
    "\n"
    "\n"
    "def wrap_units(model, unit_bytes=UNIT_BYTES):\n"
    "    \"\"\"The smallest modules whose parameters, without those of units inside, have at least so many bytes.\"\"\"\n"
    "    units, seen = [], set()\n"
    "\n"
    "    def rest_of(module):\n"
    "        own = [p for p in module.parameters(recurse=False) if p not in seen]\n"
    "        seen.update(own)\n"
    "        rest = sum(p.numel() * p.element_size() for p in own) + sum(rest_of(child) for child in module.children())\n"
    "        if rest < unit_bytes or module is model or isinstance(module, (nn.ModuleList, nn.ModuleDict)):\n"
    "            return rest\n"
    "        units.append(module)\n"
    "        return 0\n"
    "\n"
    "    rest_of(model)\n"
    "    return units\n"
    "\n"
    "\n"
    "def shard(model, **options):\n"
    "    from torch.distributed.fsdp import fully_shard\n"
    "\n"
    "    for unit in wrap_units(model):\n"
    "        fully_shard(unit, **options)\n"
    "    return fully_shard(model, **options)\n";

static bool fsdp_fits(const struct rp_opt_plan *plan)
{
    return plan->source == RP_OPT_TORCH && plan->ranks > 1 && rp_opt_threshold(plan) > 0;
}

/* Returns half the mean size of a bucket, because units are whole modules. */
static int64_t unit_bytes(const struct rp_opt_plan *plan)
{
    int64_t bytes = 0;

    for (size_t i = 0; i < plan->ngroups; i++)
        bytes += plan->groups[i].bytes;
    return plan->ngroups ? bytes / (int64_t)plan->ngroups / 2 : 0;
}

static void fsdp_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    rp_out_text(
        to,
        "\"\"\"Units to wrap for FullyShardedDataParallel, found by 'reprise optimize'. "
        "Works with stock PyTorch 2.6 or newer.\n\n"
        "    model = fsdp_units.shard(model)\n\n"
        "Before 2.6: FullyShardedDataParallel(model, auto_wrap_policy=functools.partial(\n"
        "    torch.distributed.fsdp.wrap.size_based_auto_wrap_policy, "
        "min_num_params=UNIT_BYTES // 4))\n\n"
        "The recording is of DistributedDataParallel: the units have at least half the size of its best "
        "buckets. What sharding\nitself costs is not predicted.\n\"\"\"\n");
    rp_out_printf(to, "UNIT_BYTES = %lld\n\n", (long long)unit_bytes(plan));
    rp_out_text(to, fsdp_functions);
}

const struct rp_exporter rp_exporter_fsdp = {.name = "fsdp",
                                             .file = "fsdp_units.py",
                                             .stock = true,
                                             .works_with = "PyTorch 2.6 or newer",
                                             .summary = "modules to wrap, by size",
                                             .fits = fsdp_fits,
                                             .write = fsdp_write};
