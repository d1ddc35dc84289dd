# SPDX-License-Identifier: Apache-2.0
"""A training loop on the stub of PyTorch beside it, for tests/try/check. FAULT names what goes wrong in the variant that has
the changed optimizer: crash, hang, memory, error, other (another update), slightly (a little), exit."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "stub"))
import torch  # noqa: E402

FAULT, STEP = os.environ.get("FAULT", ""), float(os.environ.get("STEP", "0.005"))


class Model(torch.nn.Module):
    def __init__(self):
        self.weights = [torch.Tensor([1.0, 2.0, 3.0, 4.0])]

    def forward(self):
        return sum(self.weights[0].values)


def fault():
    if FAULT == "crash":
        os.kill(os.getpid(), 11)
    elif FAULT == "hang":
        time.sleep(1000)
    elif FAULT == "memory":
        raise MemoryError("no room for the table")
    elif FAULT == "error":
        raise ValueError("the shapes do not fit")
    elif FAULT == "exit":
        os._exit(3)


model = Model()
optimizer = torch.optim.AdamW(model.parameters())
fused = optimizer.param_groups[0]["fused"]
if fused and FAULT in ("other", "slightly"):
    optimizer.param_groups[0]["lr"] = 0.01 if FAULT == "other" else 0.2
for i in range(int(os.environ.get("STEPS", "100000"))):
    model()
    if fused and i == int(os.environ.get("AT", "5")):
        fault()
    time.sleep(STEP * (0.2 if fused else 4 if optimizer.param_groups[0]["foreach"] else 1))
    optimizer.step()
    if i % 10 == 0:
        with open("steps.txt", "a") as out:
            out.write(f"{i}\n")
