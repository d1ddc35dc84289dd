# SPDX-License-Identifier: Apache-2.0
"""Small training jobs for tests/live/try_frameworks: `try_jobs.py NAME [FILE]` trains on the CPU, seeds itself, and appends to FILE,
for the first 30 steps, a digest of its parameters after each step. Nothing here knows about `try`."""
import hashlib
import sys

STEPS = 4000


def digest(parameters):
    """To FILE, one line a process: the run without `try` has one, each variant has its own."""
    if len(sys.argv) < 3 or digest.steps >= 30:
        return
    digest.steps += 1
    sha = hashlib.sha256()
    for p in parameters:
        sha.update(p.detach().cpu().numpy().tobytes() if hasattr(p, "detach") else bytes(memoryview(p)))
    digest.lines.append(sha.hexdigest()[:16])
    if digest.steps == 30:
        with open(sys.argv[2], "a") as out:
            out.write(" ".join(digest.lines) + "\n")


digest.steps, digest.lines = 0, []


def parts(width=64):
    import torch

    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(32, width), torch.nn.GELU(), *(torch.nn.Linear(width, width) for _ in range(6)),
                                torch.nn.LayerNorm(width), torch.nn.Linear(width, 4))
    x = torch.randn(256, 32)
    data = torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())
    return torch, model, data


def plain():
    torch, model, data = parts()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    done = 0
    while done < STEPS:
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            digest(model.parameters())
            done += 1


def faulty():
    """A loop that fails as the environment says (FAULT), where its optimizer is fused."""
    import os
    import signal
    import time

    torch, model, data = parts()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = data.tensors
    for step in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step != 5 or not optimizer.param_groups[0].get("fused"):
            continue
        if os.environ["FAULT"] == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if os.environ["FAULT"] == "hang":
            time.sleep(1e6)
        torch.empty(1 << 60)


def conv():
    import torch

    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3), torch.nn.Flatten(),
                                torch.nn.Linear(16 * 144, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    x, y = torch.randn(8, 3, 16, 16), torch.randint(0, 4, (8,))
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        digest(model.parameters())


def gan():
    """The critic steps three times as often as the generator: a step is one of the generator."""
    torch, critic, _ = parts()
    maker = torch.nn.Linear(8, 32)
    of_critic = torch.optim.Adam(critic.parameters(), lr=1e-4)
    of_maker = torch.optim.Adam(maker.parameters(), lr=1e-4)
    for _ in range(STEPS):
        for _ in range(3):
            of_critic.zero_grad()
            critic(maker(torch.randn(8, 8)).detach()).mean().backward()
            of_critic.step()
        of_maker.zero_grad()
        critic(maker(torch.randn(8, 8))).mean().backward()
        of_maker.step()
        digest(maker.parameters())


def accelerate():
    torch, model, data = parts()
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3),
                                                   torch.utils.data.DataLoader(data, batch_size=16))
    for _ in range(STEPS):
        for x, y in loader:
            with accelerator.accumulate(model):
                accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                digest(model.parameters())


def lightning():
    torch, model, data = parts()
    import lightning as L

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, _):
            x, y = batch
            return torch.nn.functional.cross_entropy(self.model(x), y)

        validation_step = training_step

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

        def on_train_batch_end(self, *_):
            digest(self.parameters())
    L.seed_everything(3)
    trainer = L.Trainer(max_steps=STEPS, accelerator="cpu", enable_progress_bar=False, limit_val_batches=2, val_check_interval=10)
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    trainer.fit(Module(), loader, loader)


def trainer():
    torch, _, _ = parts()
    import transformers

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 4096

        def __getitem__(self, i):
            return {"input_ids": torch.arange(i % 7, i % 7 + 16), "labels": torch.arange(i % 7, i % 7 + 16)}

    class Note(transformers.TrainerCallback):
        def on_step_end(self, _args, _state, _control, model=None, **_):
            digest(model.parameters())
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=32, attn_pdrop=0.1)
    arguments = transformers.TrainingArguments("out", max_steps=STEPS, per_device_train_batch_size=4, use_cpu=True, report_to=[], save_steps=30,
                                               seed=3, optim="adamw_torch", lr_scheduler_type="constant",
                                               disable_tqdm=True, logging_steps=1000)
    transformers.set_seed(3)
    transformers.Trainer(transformers.GPT2LMHeadModel(config), arguments, train_dataset=Data(), callbacks=[Note()]).train()


def jax():
    import jax
    import jax.numpy as jnp
    import numpy

    @jax.jit
    def step(weights, x):
        value, slope = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) @ w.T))(weights)
        return weights - 0.1 * slope, value

    @jax.jit
    def small(x):
        return x + 1

    weights, x = jax.random.normal(jax.random.key(0), (64, 64)), jnp.ones((128, 64))
    for _ in range(STEPS * 4):
        small(jnp.zeros(4))
        weights, _ = step(weights, x)
        digest([numpy.asarray(weights)])


def keras_parts(keras, dropout=0.0):
    import tensorflow as tf

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.layers.Input((32,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dropout(dropout),
                              keras.layers.Dense(128, activation="relu"), keras.layers.Dense(4)])
    x = tf.random.stateless_normal((256, 32), (1, 2))
    data = tf.data.Dataset.from_tensor_slices((x, tf.cast(tf.reduce_sum(x, 1) > 0, tf.int32))).shuffle(256, seed=5).batch(16)
    return tf, model, data, keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def keras_fit(keras, steps_per_execution=1, **options):
    _, model, data, loss = keras_parts(keras, **options)

    class Note(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            digest([v.numpy() for v in model.trainable_variables])
    model.compile("adam", loss, steps_per_execution=steps_per_execution)
    model.fit(data.repeat(), steps_per_epoch=STEPS * steps_per_execution, epochs=4, verbose=0, callbacks=[Note()])


def keras():
    import keras as module

    keras_fit(module, dropout=0.1)


def keras2():
    """Keras 2; a call of its function runs four steps."""
    import tf_keras as module

    keras_fit(module, steps_per_execution=4)


def tf_function():
    """A loop around functions of the program: one trains, the other one does not."""
    import keras as module

    tf, model, data, loss = keras_parts(module)
    optimizer = module.optimizers.Adam(1e-3)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return value

    @tf.function
    def scale(x):
        return x * 1.0
    for x, y in data.repeat().take(4 * STEPS):
        train(scale(x), y)
        digest([v.numpy() for v in model.trainable_variables])


def tf_eager():
    """No function, and no optimizer: a step is a gradient."""
    import tensorflow as tf

    weights = tf.Variable(tf.random.stateless_normal((32, 32), (1, 2)))
    x = tf.random.stateless_normal((64, 32), (1, 2))
    for _ in range(4 * STEPS):
        with tf.GradientTape() as tape:
            value = tf.reduce_mean(tf.tanh(x @ weights) @ weights)
        weights.assign_sub(0.1 * tape.gradient(value, weights))
        digest([weights.numpy()])


def tf_faulty():
    """A loop that fails as the environment says (FAULT), where TensorFlow has one thread between operators."""
    import os
    import signal
    import tensorflow as tf

    weights = tf.Variable(tf.ones((32, 32)))

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(weights @ weights)
        weights.assign_sub(1e-5 * tape.gradient(value, weights))
    for step in range(100 * STEPS):
        train()
        if step == 5 and tf.config.threading.get_inter_op_parallelism_threads() == 1 and os.environ["FAULT"] == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
