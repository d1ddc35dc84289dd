# SPDX-License-Identifier: Apache-2.0
"""Trains a small model of many layers on the CPU, written as most scripts are: nothing in it is set for speed.

    reprise try -- python examples/try_cpu.py

finds what would make it faster, without touching it. Needs PyTorch.
"""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        x = torch.linspace(0, 1, 64) * (i % 97)
        return x.sin(), (x * x).sum() % 10


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 96), *(Block(96) for _ in range(24)), nn.Linear(96, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(torch.utils.data.DataLoader(Squares(), batch_size=16)):
        loss = nn.functional.cross_entropy(model(x), y.long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            torch.save(model.state_dict(), "model.pt")
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
