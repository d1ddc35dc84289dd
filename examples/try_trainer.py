# SPDX-License-Identifier: Apache-2.0
"""Trains a T5 from nothing with Hugging Face's Trainer, on texts that it makes up: nothing in it is set for speed.

    reprise try -- python examples/try_trainer.py

Needs transformers and accelerate; runs on a GPU where there is one, with a model of the size of t5-small, else as a tiny one on the CPU.
"""
import torch
import transformers

LARGE = torch.cuda.is_available()
LENGTH = 128 if LARGE else 16


class Reversed(torch.utils.data.Dataset):
    """To write a sequence of numbers backwards."""

    def __len__(self):
        return 1 << 16

    def __getitem__(self, i):
        numbers = (torch.arange(LENGTH) * (i % 13 + 1) + i) % 100 + 2
        return {"input_ids": numbers, "labels": numbers.flip(0)}


def main():
    transformers.set_seed(0)
    size = {} if LARGE else {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2}
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=128, decoder_start_token_id=0, **size))
    options = transformers.TrainingArguments(output_dir="t5", per_device_train_batch_size=8, max_steps=5000, save_steps=200, logging_steps=500,
                                             report_to=[], disable_tqdm=True)
    transformers.Trainer(model=model, args=options, train_dataset=Reversed()).train()


if __name__ == "__main__":
    main()
