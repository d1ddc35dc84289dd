/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes buckets for DistributedDataParallel. One size for all buckets is an argument of it. It has
 * no argument for a list of buckets, and forms its own ones again after the first step; so a class
 * that uses only public hooks of PyTorch replaces it to get the exact buckets.
 */
#include "opt/export/exports.h"

#include <math.h>

static const char ddp_class[] =
    "import torch\n"
    "import torch.distributed as dist\n"
    "\n"
    "\n"
    "class BucketedGradients:\n"
    "    \"\"\"Averages gradients over the ranks in given buckets, each as soon as its last gradient is ready.\"\"\"\n"
    "\n"
    "    def __init__(self, model, counts=BUCKETS, group=None):\n"
    "        self.group, self.counts, self.enabled = group, list(counts), True\n"
    "        self.world = dist.get_world_size(group)\n"
    "        self.params = [p for p in model.parameters() if p.requires_grad]\n"
    "        for tensor in [*model.parameters(), *model.buffers()]:\n"
    "            dist.broadcast(tensor.data, 0, group=group)\n"
    "        self.order, self.buckets, self.bucket_of = [], [], {}\n"
    "        self.next, self.work = 0, []\n"
    "        for i, p in enumerate(self.params):\n"
    "            p.register_post_accumulate_grad_hook(lambda _, i=i: self._ready(i))\n"
    "\n"
    "    def _learn(self):\n"
    "        \"\"\"From the order of the first backward pass, which is that of rank 0 everywhere.\"\"\"\n"
    "        order = [self.order + [i for i in range(len(self.params)) if i not in set(self.order)]]\n"
    "        dist.broadcast_object_list(order, 0, group=self.group)\n"
    "        rest, counts = order[0], self.counts + [len(self.params)]\n"
    "        for count in counts:\n"
    "            taken, rest = rest[:count], rest[count:]\n"
    "            kinds = {}\n"
    "            for i in taken:\n"
    "                kinds.setdefault((self.params[i].dtype, self.params[i].device), []).append(i)\n"
    "            self.buckets += kinds.values()\n"
    "        self.bucket_of = {i: b for b, members in enumerate(self.buckets) for i in members}\n"
    "        self.flat = [torch.empty(sum(self.params[i].numel() for i in members), dtype=self.params[members[0]].dtype,\n"
    "                                 device=self.params[members[0]].device) for members in self.buckets]\n"
    "        self.left = [len(members) for members in self.buckets]\n"
    "\n"
    "    def _ready(self, i):\n"
    "        if not self.enabled:\n"
    "            return\n"
    "        if not self.bucket_of:\n"
    "            self.order.append(i)\n"
    "            return\n"
    "        self.left[self.bucket_of[i]] -= 1\n"
    "        while self.next < len(self.buckets) and not self.left[self.next]:\n"
    "            self._start()\n"
    "\n"
    "    def _start(self):\n"
    "        \"\"\"The next bucket: all ranks send them in the same order.\"\"\"\n"
    "        members, flat = self.buckets[self.next], self.flat[self.next]\n"
    "        for i in members:\n"
    "            if self.params[i].grad is None:\n"
    "                self.params[i].grad = torch.zeros_like(self.params[i])\n"
    "        torch.cat([self.params[i].grad.reshape(-1) for i in members], out=flat)\n"
    "        flat.div_(self.world)\n"
    "        self.work.append(dist.all_reduce(flat, group=self.group, async_op=True))\n"
    "        self.next += 1\n"
    "\n"
    "    def wait(self):\n"
    "        \"\"\"After backward(), before the optimizer.\"\"\"\n"
    "        if not self.bucket_of:\n"
    "            self._learn()\n"
    "        while self.next < len(self.buckets):\n"
    "            self._start()\n"
    "        for members, flat, work in zip(self.buckets, self.flat, self.work):\n"
    "            work.wait()\n"
    "            at = 0\n"
    "            for i in members:\n"
    "                grad = self.params[i].grad\n"
    "                grad.copy_(flat[at : at + grad.numel()].view_as(grad))\n"
    "                at += grad.numel()\n"
    "        self.next, self.work = 0, []\n"
    "        self.left = [len(members) for members in self.buckets]\n";

static bool ddp_fits(const struct rp_opt_plan *plan)
{
    return plan->source == RP_OPT_TORCH && plan->ngroups > 0;
}

static void ddp_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    rp_out_text(to, "\"\"\"Buckets of gradients, found by 'reprise optimize'. Works with stock "
                    "PyTorch 2.1 or newer.\n\n");
    rp_opt_write_times(plan, to, "");
    if (!isnan(plan->bucket_cap_mb))
        rp_out_printf(to,
                      "\nThe same size for all:\n\n"
                      "    model = torch.nn.parallel.DistributedDataParallel(model, "
                      "bucket_cap_mb=%g)\n",
                      plan->bucket_cap_mb);
    rp_out_text(to,
                "\nExactly these, instead of DistributedDataParallel:\n\n"
                "    gradients = ddp_buckets.BucketedGradients(model)  # once\n"
                "    loss.backward()\n"
                "    gradients.wait()\n"
                "    optimizer.step()\n\n"
                "Set gradients.enabled = False for steps that only accumulate. Buffers, such as "
                "the statistics of\nBatchNorm, are sent once, at the beginning.\n\"\"\"\n");
    if (!isnan(plan->bucket_cap_mb))
        rp_out_printf(to, "BUCKET_CAP_MB = %g\n", plan->bucket_cap_mb);
    rp_out_text(to, "BUCKETS = [");
    for (size_t i = 0; i < plan->ngroups; i++)
        rp_out_printf(to, "%s%zu", i ? ", " : "", plan->groups[i].ntensors);
    rp_out_text(to, "]  # gradients in each, in the order in which they become ready\n"
                    "BUCKET_BYTES = [");
    for (size_t i = 0; i < plan->ngroups; i++)
        rp_out_printf(to, "%s%lld", i ? ", " : "", (long long)plan->groups[i].bytes);
    rp_out_text(to, "]\n\n");
    rp_out_text(to, ddp_class);
}

const struct rp_exporter rp_exporter_ddp = {.name = "ddp",
                                            .file = "ddp_buckets.py",
                                            .stock = true,
                                            .works_with = "PyTorch 2.1 or newer",
                                            .summary =
                                                "bucket_cap_mb, and the exact buckets as a class",
                                            .fits = ddp_fits,
                                            .write = ddp_write};
