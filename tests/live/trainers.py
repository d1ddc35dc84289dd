# SPDX-License-Identifier: Apache-2.0
"""Small jobs on other people's trainers, for record_trainers: `trainers.py NAME` trains (or generates, or evaluates) on the CPU, or
where TRAINERS_DEVICE says, and ends with one line of JSON: how many steps there were, and their median by the program's own clock. Nothing here marks a step."""
import json, os, statistics, sys, time

stamps = []
DEVICE = os.environ.get("TRAINERS_DEVICE", "cpu")


def stamp(*_args, **_more):
    """The end of a step."""
    stamps.append(time.perf_counter())


def truth(steps):
    """Most steps follow one upon the other: evaluations between two of them do not move the median."""
    between = [b - a for a, b in zip(stamps, stamps[1:])]
    print(json.dumps({"steps": steps, "step_ms": round(statistics.median(between) * 1000, 3)}), flush=True)


def torch_here():
    """PyTorch whose tensors are on the device, for jobs without a trainer that puts them there."""
    import torch
    torch.set_default_device(DEVICE)
    return torch


def mlp(torch, width=256, out=8):
    return torch.nn.Sequential(torch.nn.Linear(width, 512), torch.nn.GELU(), torch.nn.Linear(512, 512), torch.nn.GELU(),
                               torch.nn.Linear(512, out))


def lightning():
    import lightning, torch

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = mlp(torch)

        def training_step(self, batch, _):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, _):
            self.log("val", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

        def on_train_batch_end(self, *_args):
            stamp()

    data = torch.utils.data.TensorDataset(torch.randn(1280, 256), torch.randint(0, 8, (1280,)))
    loader = lambda: torch.utils.data.DataLoader(data, batch_size=64, num_workers=2, persistent_workers=True)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu" if DEVICE == "cpu" else "gpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(Net(), loader(), loader())
    truth(40)


class Rows:
    def __init__(self, torch, count):
        self.rows = torch.randint(0, 500, (count, 32))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


def gpt(torch):
    import transformers
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=500, n_positions=128, n_embd=128, n_layer=2, n_head=4))


def trainer():
    """20 optimizer steps of two batches each, an evaluation in the middle."""
    import torch, transformers

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, *_args, **_more):
            stamp()

    args = transformers.TrainingArguments(output_dir=".", max_steps=20, per_device_train_batch_size=4, gradient_accumulation_steps=2,
                                          eval_strategy="steps", eval_steps=10, save_strategy="no", report_to=[], logging_steps=5,
                                          use_cpu=DEVICE == "cpu", disable_tqdm=True)
    transformers.Trainer(gpt(torch), args, train_dataset=Rows(torch, 400), eval_dataset=Rows(torch, 40), callbacks=[Clock()]).train()
    truth(20)


def accelerate():
    import accelerate, torch
    tool = accelerate.Accelerator(cpu=DEVICE == "cpu", gradient_accumulation_steps=3)
    model = mlp(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = torch.utils.data.TensorDataset(torch.randn(90 * 32, 256), torch.randint(0, 8, (90 * 32,)))
    model, optimizer, loader = tool.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=32))
    for x, y in loader:
        with tool.accumulate(model):
            tool.backward(torch.nn.functional.cross_entropy(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
        if tool.sync_gradients:
            stamp()
    truth(30)


def gan():
    """Two optimizers: a step updates the discriminator, then the generator."""
    torch = torch_here()
    g, d = mlp(torch, 64, 256), mlp(torch, 256, 1)
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    bce = torch.nn.functional.binary_cross_entropy_with_logits
    for _ in range(40):
        real, z = torch.randn(128, 256), torch.randn(128, 64)
        od.zero_grad()
        (bce(d(real), torch.ones(128, 1)) + bce(d(g(z).detach()), torch.zeros(128, 1))).backward()
        od.step()
        og.zero_grad()
        bce(d(g(z)), torch.ones(128, 1)).backward()
        og.step()
        stamp()
    truth(40)


def wgan():
    """Five updates of the critic for one of the generator: a step is one round of all."""
    torch = torch_here()
    g, d = mlp(torch, 64, 256), mlp(torch, 256, 1)
    og, od = torch.optim.RMSprop(g.parameters()), torch.optim.RMSprop(d.parameters())
    for _ in range(20):
        for _ in range(5):
            od.zero_grad()
            (d(g(torch.randn(128, 64)).detach()).mean() - d(torch.randn(128, 256)).mean()).backward()
            od.step()
        og.zero_grad()
        (-d(g(torch.randn(128, 64))).mean()).backward()
        og.step()
        stamp()
    truth(20)


def lbfgs():
    """A closure that is called several times a step."""
    torch = torch_here()
    model = mlp(torch)
    x, y = torch.randn(256, 256), torch.randint(0, 8, (256,))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(15):
        optimizer.step(closure)
        stamp()
    truth(15)


def ddp():
    """Under torchrun, with gloo; every second backward pass does not communicate."""
    import contextlib, torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    model = torch.nn.parallel.DistributedDataParallel(mlp(torch), bucket_cap_mb=float(os.environ.get("BUCKET", "25")))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(20):
        for part in range(2):
            with model.no_sync() if part == 0 else contextlib.nullcontext():
                model(torch.randn(64, 256)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        stamp()
    if dist.get_rank() == 0:
        truth(20)
    dist.destroy_process_group()


def gnn():
    """Sums over the edges of a graph; the loss is read every fifth step."""
    torch = torch_here()
    n, width = 2000, 64
    edges = torch.randint(0, n, (2, 10000))
    x, y = torch.randn(n, width), torch.randint(0, 8, (n,))
    layers = torch.nn.ModuleList([torch.nn.Linear(width, width), torch.nn.Linear(width, 8)])
    optimizer = torch.optim.Adam(layers.parameters())
    for i in range(25):
        h = x
        for layer in layers:
            h = torch.relu(layer(h + torch.zeros_like(h).index_add_(0, edges[1], h[edges[0]])))
        loss = torch.nn.functional.cross_entropy(h, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 5 == 0:
            print(i, loss.item())
        stamp()
    truth(25)


def generate():
    """4 requests of 24 tokens."""
    torch = torch_here()
    model = gpt(torch).eval()

    class Clock:
        def __call__(self, ids, scores, **_more):
            stamp()
            return torch.zeros(len(ids), dtype=torch.bool)

    for _ in range(4):
        model.generate(torch.randint(0, 500, (2, 16)), max_new_tokens=24, do_sample=False, pad_token_id=0,
                       stopping_criteria=[Clock()])
    truth(96)


def evaluate():
    """No optimizer: a loop over a loader."""
    torch = torch_here()
    model = torch.nn.Sequential(*[torch.nn.Conv2d(3 if i == 0 else 16, 16, 3, padding=1) for i in range(4)]).eval()
    data = torch.utils.data.TensorDataset(torch.randn(30 * 8, 3, 64, 64))
    with torch.no_grad():
        for (x,) in torch.utils.data.DataLoader(data, batch_size=8):
            model(x).mean().item()
            stamp()
    truth(30)


def plain():
    """No optimizer, no loader, nothing that marks a step."""
    torch = torch_here()
    model = mlp(torch).eval()
    x = torch.randn(512, 256)
    with torch.inference_mode():
        for _ in range(50):
            model(x)
            stamp()
    truth(50)


def own_optimizer():
    """A class of optimizer of one's own."""
    torch = torch_here()

    class Sign(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.001})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    model = mlp(torch)
    optimizer = Sign(model.parameters())
    for i in range(30):
        optimizer.zero_grad()
        model(torch.randn(128, 256)).square().mean().backward()
        optimizer.step()
        stamp()
        if i in (9, 19):
            torch.save(model.state_dict(), "checkpoint.pt")
            with torch.no_grad():
                for _ in range(20):
                    model(torch.randn(128, 256))
    truth(30)


def sentence():
    import sentence_transformers as st, sentence_transformers.losses, transformers
    from tokenizers import Tokenizer, models, pre_tokenizers
    words = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(200))])}
    tok = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                         sep_token="[SEP]", mask_token="[MASK]").save_pretrained("bert")
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
                                                   intermediate_size=256)).save_pretrained("bert")
    import datasets
    model = st.SentenceTransformer("bert", device=DEVICE)
    text = lambda i: " ".join(str((i * k) % 200) for k in range(1, 12))
    data = datasets.Dataset.from_dict({"anchor": [text(i) for i in range(320)], "positive": [text(i + 1) for i in range(320)]})

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, *_args, **_more):
            stamp()

    args = st.SentenceTransformerTrainingArguments(output_dir=".", num_train_epochs=1, per_device_train_batch_size=16, report_to=[],
                                                   save_strategy="no", use_cpu=DEVICE == "cpu", disable_tqdm=True)
    st.SentenceTransformerTrainer(model, args, train_dataset=data, loss=st.losses.MultipleNegativesRankingLoss(model),
                                  callbacks=[Clock()]).train()
    truth(20)


def jax_net():
    import jax, jax.numpy as jnp, optax
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    params = [jax.random.normal(k, s) * 0.05 for k, s in zip(keys, ((256, 512), (512, 512), (512, 8)))]
    tool = optax.adamw(1e-3)

    def loss(params, x):
        for w in params[:-1]:
            x = jax.nn.gelu(x @ w)
        return jnp.mean((x @ params[-1]) ** 2)

    def update(params, state, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        updates, state = tool.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return jax, jnp, params, tool.init(params), update, loss


def optax():
    """A jitted step, a jitted evaluation every tenth step."""
    jax, jnp, params, state, update, loss = jax_net()
    step, check = jax.jit(update), jax.jit(loss)
    x = jnp.ones((256, 256))
    for i in range(40):
        params, state, value = step(params, state, x)
        jax.block_until_ready(value)
        stamp()
        if i % 10 == 9:
            for _ in range(5):
                float(check(params, x))
    truth(40)


def scan():
    """20 calls, each of which makes 10 steps inside the compiled program: the host sees 20."""
    jax, jnp, params, state, update, _ = jax_net()

    @jax.jit
    def epoch(params, state, xs):
        def body(carry, x):
            p, s, value = update(*carry, x)
            return (p, s), value
        (params, state), values = jax.lax.scan(body, (params, state), xs)
        return params, state, values.mean()

    xs = jnp.ones((10, 64, 256))
    for _ in range(20):
        params, state, value = epoch(params, state, xs)
        jax.block_until_ready(value)
        stamp()
    truth(20)


def flax():
    import jax, jax.numpy as jnp, optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.a, self.b = nnx.Linear(256, 512, rngs=rngs), nnx.Linear(512, 8, rngs=rngs)

        def __call__(self, x):
            return self.b(nnx.gelu(self.a(x)))

    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def train_step(model, optimizer, x):
        value, grads = nnx.value_and_grad(lambda m: jnp.mean(m(x) ** 2))(model)
        optimizer.update(model, grads)
        return value

    for _ in range(30):
        jax.block_until_ready(train_step(model, optimizer, jnp.ones((256, 256))))
        stamp()
    truth(30)


def keras_net(keras, numpy):
    model = keras.Sequential([keras.Input((256,)), *[keras.layers.Dense(512, activation="relu") for _ in range(3)], keras.layers.Dense(8)])
    return model, numpy.random.rand(1280, 256).astype("float32"), numpy.random.randint(0, 8, 1280)


def keras():
    """model.fit of Keras 3, on the backend that KERAS_BACKEND names: 2 epochs of 20 steps with validation."""
    import keras as k, numpy
    model, x, y = keras_net(k, numpy)
    model.compile("adam", k.losses.SparseCategoricalCrossentropy(from_logits=True))
    clock = k.callbacks.LambdaCallback(on_train_batch_end=stamp)
    model.fit(x, y, batch_size=64, epochs=2, validation_data=(x[:320], y[:320]), verbose=0, callbacks=[clock])
    truth(40)


def tensorflow():
    """A custom loop: tf.function around a GradientTape."""
    import keras as k, numpy, tensorflow as tf
    model, x, y = keras_net(k, numpy)
    optimizer, loss = k.optimizers.SGD(0.01), k.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        grads = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return value

    for epoch in range(2):
        for bx, by in tf.data.Dataset.from_tensor_slices((x, y)).batch(64):
            float(train_step(bx, by))
            stamp()
    truth(40)


if __name__ == "__main__":
    {k: v for k, v in globals().items() if callable(v)}[sys.argv[1]]()
