# SPDX-License-Identifier: Apache-2.0
"""Trains a UNet that removes noise from pictures with Lightning: nothing in it is set for speed.

    reprise try -- python examples/try_lightning.py

Needs lightning; runs on a GPU where there is one, else as a small network on the CPU.
"""
import lightning
import torch
from torch import nn

LARGE = torch.cuda.is_available()
WIDTH, SIDE = (64, 128) if LARGE else (8, 32)


def convolutions(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.SiLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.SiLU())


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = convolutions(3, width)
        self.second = convolutions(width, 2 * width)
        self.bottom = convolutions(2 * width, 2 * width)
        self.back = convolutions(4 * width, width)
        self.last = nn.Sequential(convolutions(2 * width, width), nn.Conv2d(width, 3, 1))
        self.down, self.up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)

    def forward(self, x):
        one = self.first(x)
        two = self.second(self.down(one))
        x = self.back(torch.cat([two, self.up(self.bottom(self.down(two)))], 1))
        return self.last(torch.cat([one, self.up(x)], 1))


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 16

    def __getitem__(self, i):
        line = torch.linspace(0, i % 29 + 1, SIDE)
        picture = torch.stack([line.sin()[:, None] * line.cos(), line.cos()[:, None] * line.sin(), line.sin()[:, None] + line.sin()])
        return picture + 0.1 * torch.randn(picture.shape, generator=torch.Generator().manual_seed(i)), picture


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = UNet(WIDTH)

    def training_step(self, batch, _):
        noisy, picture = batch
        return nn.functional.mse_loss(self.net(noisy), picture)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    lightning.seed_everything(0)
    trainer = lightning.Trainer(max_steps=5000, enable_progress_bar=False, enable_model_summary=False, logger=False)
    trainer.fit(Module(), torch.utils.data.DataLoader(Pictures(), batch_size=8))


if __name__ == "__main__":
    main()
