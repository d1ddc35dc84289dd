# SPDX-License-Identifier: Apache-2.0
"""Runs inside the program that `reprise try` starts, and makes it stop after each turn of steps.

`try` writes this file as sitecustomize.py into a folder of PYTHONPATH; Python imports it when it starts. It waits for PyTorch, JAX
or TensorFlow to be imported, makes the changes that REPRISE_TRY_CHANGES names where the framework constructs optimizers, loaders
and models, and counts steps:

PyTorch     the unit is a step of one optimizer, by PyTorch's own global hooks; where a program has none, a call of a model
JAX         the unit is a call of one compiled function
TensorFlow  the unit is a call of one tf.function that takes gradients, as that of Keras' model.fit; where there is none, a step of
            an optimizer, or a gradient, outside functions

At the end of the first step it connects to the socket REPRISE_TRY and obeys; each line is a message, words separated by spaces:

    from here   hello RANK WORLD PID · precision CLASS NAME · fact KEY VALUE · applied NAME HOW · refused NAME WHY · ready NS · warm · ran STEPS NS COMPILED
                BYTES · updated · error TEXT · ended
    to here     run WARM N (WARM steps, then "warm", and once "go" is heard N that are timed) · update FILE (write by how much the
                parameters changed) · exit

It ends the program by os._exit: every other way runs handlers that save checkpoints. A closed socket means exit.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CHANGES = [c for c in os.environ.get("REPRISE_TRY_CHANGES", "").split(",") if c]
VALUES = dict(c.partition("=")[::2] for c in CHANGES)
PROBE = int(os.environ.get("REPRISE_TRY_PROBE", "0"))  # steps to watch, or 0
UNIT = os.environ.get("REPRISE_TRY_UNIT", "")  # "optimizer 1", "call 0", "jit 3", "function train 0"; "" in the probe
SAMPLES = 1 << 20  # values of all parameters that are compared
COMPARED = [int(n) for n in os.environ.get("REPRISE_TRY_COMPARED", "").split()]  # after these steps
TALLY = os.environ.get("REPRISE_TRY_TALLY", "")  # a folder: the program runs to its end, then its number of steps is written there
ROUND = os.environ.get("REPRISE_TRY_ROUND", "")  # the format to which parameters are rounded once, before the first step
now = time.perf_counter_ns  # taken before the program can replace it


def place():
    """The number of this process and how many there are: as the program has told PyTorch, or by the launcher."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    for rank, world in (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")):
        if os.environ.get(rank):
            return int(os.environ[rank]), int(os.environ.get(world) or 1)
    return 0, 1


class Line:
    """The connection to `try`."""

    def __init__(self):
        self.socket = self.lines = self.pid = None

    def open(self):
        import socket

        if self.socket is None:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.connect(os.environ["REPRISE_TRY"])
            self.lines = self.socket.makefile("r", encoding="utf-8")
            self.pid = os.getpid()
            self.rank, world = place()
            self.tell("hello", self.rank, world, self.pid)

    def tell(self, *words):
        self.open()
        try:
            self.socket.sendall((" ".join(" ".join(str(w).split()) for w in words)[:2000] + "\n").encode())
        except OSError:
            leave()

    def hear(self):
        try:
            words = self.lines.readline().split()
        except OSError:
            words = []
        return words or ["exit"]


line = Line()
STARTED = now()
SEEDED = []


def leave():
    """Ends this process and its loaders, without handlers."""
    try:
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        import multiprocessing

        for child in multiprocessing.active_children():
            child.terminate()
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        pass
    os._exit(0)


def give_up(change, why):
    """A change that cannot be made, or has no effect, ends the variant: it would measure something else."""
    line.tell("refused", change, f"{type(why).__name__}: {why}" if isinstance(why, Exception) else why)
    leave()


class Turns:
    """Counts steps, and waits between turns."""

    def __init__(self, sync, compiled, memory, write_update, check, keep=lambda steps: None):
        self.sync, self.compiled, self.memory, self.write_update, self.check, self.keep = sync, compiled, memory, write_update, check, keep
        self.steps = self.left = self.warm = 0
        self.began = None  # when the first step began to compute
        self.since = 0

    def begin(self):
        if self.began is None:
            self.began = now()

    def step(self):
        """The end of a step."""
        self.steps += 1
        if self.steps in COMPARED:
            self.keep(self.steps)
        if TALLY:
            return
        if self.steps == 1:
            self.sync()
            first = now() - (self.began or STARTED)
            self.check()
            line.tell("ready", first)
            return self.wait()
        if self.warm > 0:  # the first step after a pause is not timed
            self.warm -= 1
            if self.warm == 0:
                self.sync()
                line.tell("warm")
                if line.hear()[0] != "go":
                    leave()
                self.since = now()
            return
        self.left -= 1
        if self.left <= 0:
            self.sync()
            ns = now() - self.since
            line.tell("ran", self.turn, ns, self.compiled(), self.memory())
            self.wait()

    def is_kept(self, blocks):
        return TALLY or blocks and blocks[-1][0] == self.steps

    def tally(self, hook):
        """The end of a program that ran without pauses."""
        self.sync()
        if getattr(hook, "blocks", None):
            self.write_update(os.path.join(TALLY, "update"))
        with open(os.path.join(TALLY, "steps"), "w") as out:
            out.write(f"{self.steps} {getattr(hook, 'precision', lambda: '0 -')()}\n")

    def wait(self):
        while True:
            words = line.hear()
            if words[0] == "run":
                self.warm, self.left = int(words[1]), int(words[2])
                self.turn = self.left
                self.sync()
                self.since = now()
                return
            if words[0] == "update":
                try:
                    self.write_update(" ".join(words[1:]) + (f".{line.rank}" if line.rank else ""))
                    line.tell("updated")
                except Exception as problem:
                    line.tell("error", f"the update of the parameters cannot be compared: {type(problem).__name__}: {problem}")
            else:
                leave()


def write_samples(path, digest, blocks):
    """A line that is the same only where all parameters are, one with the numbers of steps, then for each of them differences as floats."""
    with open(path, "wb") as out:
        out.write((digest + "\n" + " ".join(str(steps) for steps, _ in blocks) + "\n").encode())
        for _, parts in blocks:
            for part in parts:
                out.write(part)


def floats(tensor):
    """The bytes of a float32 tensor of PyTorch on the host."""
    if not hasattr(tensor, "data_ptr"):
        import array

        return array.array("f", tensor.tolist()).tobytes()
    import ctypes

    tensor = tensor.contiguous()
    return ctypes.string_at(tensor.data_ptr(), 4 * tensor.numel())


def seed_python():
    """The same numbers in every variant, others in every rank; what the program seeds later wins. Only the first framework that is
    imported seeds: another one may come after the program's own seeds. Returns the rank."""
    rank = place()[0]
    if not SEEDED:
        import random

        SEEDED.append(rank)
        random.seed(rank)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(rank)
    return rank


def leave_out_of_collections():
    import gc

    gc.collect()
    gc.freeze()


def process_memory():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---------------------------------------------------------------------------- PyTorch

class Torch:
    def __init__(self, torch):
        self.torch = torch
        self.synchronize = getattr(getattr(torch, "_C", None), "_cuda_synchronize", getattr(torch.cuda, "synchronize", None))
        self.in_use = torch.cuda.is_available, torch.cuda.is_initialized  # like the clock: before the program can replace them
        self.optimizers = []  # in the order of their first steps
        self.counts = {}
        self.calls = 0
        self.before = {}  # samples of the parameters before the first step, by optimizer
        self.out = None  # of a call, where calls are the steps
        self.given = {}  # to calls, by the place of the argument: the tensor, its version and our copy
        self.blocks = []  # of how much they changed, after some steps
        self.models, self.loaders, self.ddp = [], [], []
        self.notes = set()
        self.computed = set()  # types of the first step
        self.turns = Turns(self.sync, self.compiled, self.memory, self.write_update, self.check, self.keep)
        self.prepared = False
        self.seed()
        self.settings()
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(self.before_step)
        register_optimizer_step_post_hook(self.after_step)
        self.wrap_calls()
        self.wrap_loaders()
        if any(c in VALUES for c in ("fused", "foreach")):
            self.wrap_optimizers()
        import torch.nn.parallel.distributed as distributed

        self.wrap_ddp(distributed.DistributedDataParallel)

    def seed(self):
        self.torch.manual_seed(seed_python())

    def settings(self):
        torch = self.torch
        if "tf32" in VALUES:
            torch.set_float32_matmul_precision("high")
        if "cudnn-benchmark" in VALUES:
            torch.backends.cudnn.benchmark = True
        if PROBE:
            self.wrap_dropout(lambda p: self.notes.add("dropout") if p else None)
        if os.environ.get("REPRISE_TRY_SAME_RANDOM"):
            import torch._inductor.config as config

            config.fallback_random = True
            self.wrap_dropout()

    def wrap_dropout(self, see=None):
        """Tells with which probability values are dropped, or drops none: other types and compiled code draw other numbers."""
        functional = getattr(self.torch.nn, "functional", None)

        def wrap(name, original, place, key):
            def dropout(*args, **kwargs):
                given = args[place] if len(args) > place else kwargs.get(key, 0.5 if key == "p" else 0.0)
                if see:
                    active = args[place + 1] if len(args) > place + 1 else kwargs.get("training", True)
                    see(given and (key != "p" or active))
                    return original(*args, **kwargs)
                if len(args) > place:
                    args = (*args[:place], 0.0, *args[place + 1:])
                else:
                    kwargs[key] = 0.0
                return original(*args, **kwargs)
            setattr(functional, name, dropout)
        for name, place, key in (("dropout", 1, "p"), ("dropout1d", 1, "p"), ("dropout2d", 1, "p"), ("dropout3d", 1, "p"),
                                 ("alpha_dropout", 1, "p"), ("feature_alpha_dropout", 1, "p"), ("scaled_dot_product_attention", 4, "dropout_p")):
            original = getattr(functional, name, None)
            if original is not None:
                wrap(name, original, place, key)

    # what the turns need

    def cuda(self):
        return all(ask() for ask in self.in_use)

    def hip(self):
        """The version of HIP, where PyTorch was built for AMD."""
        return getattr(getattr(self.torch, "version", None), "hip", None)

    def sync(self):
        if self.cuda():
            self.synchronize()

    @staticmethod
    def compiled():
        dynamo = sys.modules.get("torch._dynamo.utils")
        return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo else 0

    def memory(self):
        """Of the device, or of the process where there is none."""
        return self.torch.cuda.max_memory_reserved() if self.cuda() else process_memory()

    # steps

    def is_unit(self, optimizer):
        kind, _, number = UNIT.partition(" ")
        return kind == "optimizer" and self.optimizers.index(optimizer) == int(number)

    def before_step(self, optimizer, *_):
        self.turns.begin()
        if not any(optimizer is known for known in self.optimizers):
            self.optimizers.append(optimizer)
            parameters = self.parameters(optimizer)
            stride = max(1, sum(p.numel() for p in parameters) // SAMPLES)
            self.before[id(optimizer)] = stride, [self.sample(p, stride) for p in parameters]

    def after_step(self, optimizer, *_):
        self.counts[id(optimizer)] = self.counts.get(id(optimizer), 0) + 1
        if PROBE:
            if self.counts[id(optimizer)] >= PROBE:
                self.tell_probe()
        elif self.is_unit(optimizer):
            self.unwrap_calls()
            if self.turns.steps == 0 and "gc" in VALUES:
                leave_out_of_collections()
            self.turns.step()

    def has_steps(self):
        return bool(self.counts or self.calls)

    def tell_probe(self):
        """What the program is: then it has done its work."""
        torch, counts = self.torch, [self.counts.get(id(o), 0) for o in self.optimizers]
        tell = lambda key, value: line.tell("fact", key, value)  # noqa: E731
        tell("framework", f"torch {torch.__version__}")
        if counts:  # the one that steps most rarely; of several the last
            tell("unit", f"optimizer {max(range(len(counts)), key=lambda i: (-counts[i], i))}")
            tell("optimizers", " ".join(sorted({type(o).__name__ for o in self.optimizers})))
            groups = [g for o in self.optimizers for g in o.param_groups]
            plain = [o for o in self.optimizers if type(o).__name__ in ("Adam", "AdamW", "SGD", "Adagrad")
                     and type(o).__module__.startswith("torch.optim")
                     and not o.param_groups[0].get("fused") and o.param_groups[0].get("foreach") is None]
            tell("optimizer-open", len(plain))
            tell("optimizer-fused", int(any(g.get("fused") for g in groups)))
            parameters = [p for g in groups for p in g["params"]]
        else:
            tell("unit", "call 0")
            parameters = [p for m in self.models for p in m.parameters()]
        tell("parameters", sum(p.numel() for p in parameters))
        tell("types", " ".join(sorted({str(p.dtype).rpartition(".")[2] for p in parameters})))
        tell("device", " ".join(sorted({p.device.type for p in parameters})))
        tell("threads", torch.get_num_threads())
        tell("matmul", self.matmul())
        tell("benchmark", int(torch.backends.cudnn.benchmark))
        if self.hip():
            tell("hip", self.hip())
        tell("tf32", int(self.cuda() and self.computes_in_tf32()))
        tell("autocast", int("autocast" in self.notes))
        tell("dropout", int("dropout" in self.notes))
        tell("compiled", self.compiled())
        tell("convolutions", sum(isinstance(m, torch.nn.Conv2d) for top in self.models for m in top.modules()))
        tell("models", len(self.models))
        tell("loaders", len(self.loaders))
        tell("loaders-without-workers", sum(n == 0 for n in self.loaders))
        tell("loaders-nested", int("nested" in self.notes))
        tell("ddp", len(self.ddp))
        tell("memory", self.memory())
        if self.cuda():
            free, total = torch.cuda.mem_get_info()
            tell("device-free", free)
            tell("device-total", total)
            tell("device-name", torch.cuda.get_device_name())
            tell("device-uuid", getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", ""))
        tell("rss", process_memory())
        line.tell("ready", 0)
        line.hear()
        leave()

    def computes_in_tf32(self):
        """PyTorch's convolutions of float32 do, unless told otherwise."""
        torch = self.torch
        convolutions = any(isinstance(m, torch.nn.modules.conv._ConvNd) for top in self.models for m in top.modules())
        return self.matmul() != "highest" or convolutions and torch.backends.cudnn.allow_tf32

    def matmul(self):
        """PyTorch 2.9 and later refuse to tell it in the old way if the program has set it in the new one."""
        try:
            return self.torch.get_float32_matmul_precision()
        except RuntimeError:
            return "high" if self.torch.backends.cuda.matmul.fp32_precision == "tf32" else "highest"

    # parameters

    @staticmethod
    def parameters(optimizer):
        return [p for g in optimizer.param_groups for p in g["params"]]

    def sample(self, parameter, stride):
        with self.torch.no_grad():
            p = parameter.detach()
            if hasattr(p, "to_local"):
                p = p.to_local()
            return p.reshape(-1)[::stride].to(device="cpu", dtype=self.torch.float32, copy=True)

    def digest(self, parameter):
        with self.torch.no_grad():
            p = parameter.detach()
            if hasattr(p, "to_local"):
                p = p.to_local()
            kind = {1: self.torch.int8, 2: self.torch.int16, 4: self.torch.int32, 8: self.torch.int64}[p.element_size()]
            bits = p.contiguous().reshape(-1).view(kind).to(self.torch.int64)
            places = self.torch.arange(1, bits.numel() + 1, device=bits.device, dtype=self.torch.int64)
            return int((bits * places).sum())

    def keep(self, steps):
        """How much the parameters have changed so far."""
        parts = []
        for optimizer in self.optimizers:
            stride, samples = self.before[id(optimizer)]
            parts += [floats(self.sample(p, stride) - before) for p, before in zip(self.parameters(optimizer), samples)]
        if self.out is not None:  # no parameters change: the outputs are what it computes
            tensors = list(self.tensors(self.out))
            stride = max(1, sum(t.numel() for t in tensors) // SAMPLES)
            parts += [floats(self.sample(t, stride)) for t in tensors]
        self.blocks.append((steps, parts))

    def tensors(self, value):
        if isinstance(value, self.torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple, dict)):
            for inner in value.values() if isinstance(value, dict) else value:
                if inner is not value:
                    yield from self.tensors(inner)

    def write_update(self, path):
        import hashlib

        digest = hashlib.sha256()
        for p in [p for o in self.optimizers for p in self.parameters(o)] + list(self.tensors(self.out)):
            digest.update(str(self.digest(p)).encode())
        if not self.turns.is_kept(self.blocks):
            self.keep(self.turns.steps)
        write_samples(path, digest.hexdigest(), self.blocks)
        self.blocks = []

    # models

    def wrap_calls(self):
        """Watches the outermost calls of models until the first step is done."""
        Module = self.torch.nn.Module
        self.original = Module.__call__
        hook = self

        def call(module, *args, **kwargs):
            if not hook.wants(module):
                return hook.original(module, *args, **kwargs)
            Module.__call__ = hook.original  # what is inside is not watched, nor seen by the compiler
            hook.turns.begin()
            try:
                hook.prepare(module)
                if UNIT.startswith("call"):
                    args = [hook.own(i, a) for i, a in enumerate(args)]
                    kwargs = {k: hook.own(k, a) for k, a in kwargs.items()}
                out = hook.original(module, *args, **kwargs)
            finally:
                if not hook.prepared:
                    Module.__call__ = call
            hook.after_call(out)
            return out
        Module.__call__ = call

    def unwrap_calls(self):
        if not self.prepared:
            self.prepared = True
            self.torch.nn.Module.__call__ = self.original

    def wants(self, module):
        if next(module.parameters(), None) is None:
            return False
        return UNIT.startswith("call") or not UNIT or self.torch.is_grad_enabled()

    def after_call(self, out):
        """Programs without an optimizer: a call is a step."""
        if self.turns.steps == 0:
            self.see_types(out)
        self.calls += 1
        if PROBE and self.calls >= 10 * PROBE and not self.counts:
            self.tell_probe()
        if UNIT.startswith("call"):
            self.out = out
            self.turns.step()
            self.out = out if TALLY else None

    def see_types(self, out):
        """Types in which the model computed, from the graph of the gradients, which nothing needs to watch."""
        nodes, seen = [t.grad_fn for t in self.tensors(out) if getattr(t, "grad_fn", None) is not None], set()
        while nodes and len(seen) < 100000:
            node = nodes.pop()
            if node in seen:
                continue
            seen.add(node)
            if "CompiledFunction" in type(node).__name__:  # its inside is not seen
                self.notes.add("compiled")
            self.computed.update(m.dtype for m in getattr(node, "_input_metadata", ()))
            nodes += [n for n, _ in node.next_functions if n is not None]

    def precision(self):
        """The coarsest arithmetic of the first step, as a class and a name: 1 of 24 bits and more, 2 of TF32, 3 of 16 bits, 4 of 8;
        0 if it is not known."""
        parameters = [p for o in self.optimizers for p in self.parameters(o)] or [p for m in self.models for p in m.parameters()]
        found = [(1, "float32")]
        for kind in {p.dtype for p in parameters} | self.computed:
            name = str(kind).rpartition(".")[2]
            found += [(3, name)] if name in ("bfloat16", "float16") else [(4, name)] if name.startswith(("float8", "float4", "qint", "quint")) else []
        if any("quantized" in type(inner).__module__ for m in self.models for inner in m.modules()):
            found.append((4, "int8"))
        if self.computes_in_tf32() if self.cuda() else self.matmul() != "highest":
            found.append((2, "tf32" if self.cuda() else f"products of precision '{self.matmul()}'"))
        return "0 -" if max(found)[0] == 1 and "compiled" in self.notes else "%d %s" % max(found)

    def own(self, place, value):
        """Of a tensor that is given again and again, as benchmarks do, a copy whose first row changes with every call: an output that
        was kept from an earlier call is not that of this one."""
        import weakref

        if type(value) is not self.torch.Tensor or not value.is_floating_point() or value.requires_grad or value.dim() == 0:
            return value
        known, version, copy = self.given.get(place, (None, None, None))
        now = None if value.is_inference() else value._version
        if known is None or known() is not value or version != now:
            self.given[place] = weakref.ref(value), now, None
            return value
        with self.torch.inference_mode(False), self.torch.no_grad():
            if copy is None:
                copy = value.clone()
                self.given[place] = known, now, copy
            copy[:1] = value[:1] * (1 + self.calls % 4 / 4)
        return copy

    def prepare(self, module):
        if any(module is known for known in self.models):
            return
        self.models.append(module)
        torch = self.torch
        device = next(module.parameters()).device.type
        if torch.is_autocast_enabled(device):
            self.notes.add("autocast")
            if hasattr(torch, "get_autocast_dtype"):
                self.computed.add(torch.get_autocast_dtype(device))
        inner = module.module if isinstance(module, torch.nn.parallel.DistributedDataParallel) else module
        if ROUND:
            self.round(inner)
        if "channels-last" in VALUES:
            inner.to(memory_format=torch.channels_last)
        if "bf16" in VALUES:
            self.autocast(inner, device)
        if "compile" in VALUES or "reduce-overhead" in VALUES:
            more = {"mode": "reduce-overhead"} if "reduce-overhead" in VALUES else {}
            if type(inner).__module__.startswith("torch."):  # of these, older compilers see no code without a frame of somebody else
                call = inner._call_impl
                inner._compiled_call_impl = torch.compile(lambda *args, **kwargs: call(*args, **kwargs), **more)
            else:
                inner.compile(**more)

    def round(self, module):
        """Shows what a difference of this size does to the program."""
        torch = self.torch
        with torch.no_grad():
            for p in module.parameters():
                if p.dtype != torch.float32:
                    continue
                if ROUND == "bf16":
                    p.copy_(p.to(torch.bfloat16))
                elif ROUND == "tf32":
                    p.copy_(((p.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32))
                else:  # the last bit, up and down
                    p.copy_((p.view(torch.int32) ^ 1).view(torch.float32))

    def autocast(self, module, device):
        """The outputs are cast back, so that a loss computed outside is in float32 as before."""
        torch, forward, notes = self.torch, module.forward, self.notes

        def back(value):
            if isinstance(value, torch.Tensor):
                return value.float() if value.dtype == torch.bfloat16 else value
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return type(value)(*(back(v) for v in value))
            if isinstance(value, (list, tuple)):
                return type(value)(back(v) for v in value)
            if isinstance(value, dict):
                for key in list(value):
                    value[key] = back(value[key])
            return value

        def bf16(*args, **kwargs):
            with torch.autocast(device, dtype=torch.bfloat16):
                return back(forward(*args, **kwargs))
        self.see_bf16(module, notes)
        bf16.__wrapped__ = forward
        module.forward = bf16

    def see_bf16(self, module, notes):
        """A layer that computed in bfloat16 is the proof. Its first output is looked at, once; a compiler sees no hook."""
        torch = self.torch
        if "compile" in VALUES or "reduce-overhead" in VALUES:
            notes.add("bf16")
            return
        handles = []

        def look(layer, args, out):
            if isinstance(out, torch.Tensor) and out.dtype == torch.bfloat16:
                notes.add("bf16")
                while handles:
                    handles.pop().remove()
        for layer in module.modules():
            if isinstance(layer, (torch.nn.Linear, torch.nn.modules.conv._ConvNd)) or "Conv1D" in type(layer).__name__:
                handles.append(layer.register_forward_hook(look))

    # constructors

    @staticmethod
    def replace_init(cls, change):
        """Changes arguments that the program left at their defaults. Subclasses are left alone: they may have other ones."""
        import functools
        import inspect

        original = cls.__init__
        names = inspect.signature(original)

        @functools.wraps(original)
        def init(self, *args, **kwargs):
            if type(self) is cls:
                try:
                    bound = names.bind(self, *args, **kwargs)
                except TypeError:
                    return original(self, *args, **kwargs)
                change(bound.arguments, kwargs, self)
            return original(self, *args, **kwargs)
        cls.__init__ = init

    def wrap_optimizers(self):
        which = "fused" if "fused" in VALUES else "foreach"

        def change(given, kwargs, _):
            if given.get("fused") is None and given.get("foreach") is None and not given.get("differentiable"):
                kwargs[which] = True
        for name in ("Adam", "AdamW", "SGD", "Adagrad"):
            self.replace_init(getattr(self.torch.optim, name), change)

    def wrap_loaders(self):
        wanted = int(VALUES.get("workers") or 0)
        hook = self

        def change(given, kwargs, loader):
            if wanted and not given.get("num_workers") and ("num_workers" in kwargs or "num_workers" not in given):
                kwargs.update(num_workers=wanted, persistent_workers=True)
                if hook.torch.cuda.is_available() and "pin_memory" not in given:
                    kwargs["pin_memory"] = True
                hook.notes.add("workers")
            hook.loaders.append(kwargs.get("num_workers", given.get("num_workers", 0)) or 0)
        self.replace_init(self.torch.utils.data.DataLoader, change)
        if PROBE:
            self.watch_loaders(self.torch.utils.data.DataLoader)

    def watch_loaders(self, cls):
        """Whether a loader is iterated while an iteration of it goes on, as by an evaluation between two steps of training: persistent
        workers would begin both anew."""
        base = getattr(getattr(self.torch.utils.data, "dataloader", None), "_BaseDataLoaderIter", None)
        if base is None:
            return
        begin, fetch, notes = cls.__iter__, base.__next__, self.notes

        def iterate(loader):
            iterator = begin(loader)
            loader._reprise_latest = number = getattr(loader, "_reprise_latest", 0) + 1
            iterator._reprise = loader, number
            return iterator

        def batch(iterator):
            loader, number = getattr(iterator, "_reprise", (None, 0))
            if loader is not None and loader._reprise_latest != number:
                notes.add("nested")
            return fetch(iterator)
        cls.__iter__, base.__next__ = iterate, batch

    def wrap_ddp(self, cls):
        hook = self

        def change(given, kwargs, ddp):
            hook.ddp.append(ddp)
            if "ddp-views" in VALUES and "gradient_as_bucket_view" not in given:
                kwargs["gradient_as_bucket_view"] = True
            if "ddp-bucket" in VALUES and "bucket_cap_mb" not in given:
                kwargs["bucket_cap_mb"] = int(VALUES["ddp-bucket"])
        self.replace_init(cls, change)

    # proofs

    def check(self):
        line.tell("precision", self.precision())
        prove_changes(self)

    def took_tf32(self):
        return self.matmul() == "high" and "products use TF32"

    def took_cudnn_benchmark(self):
        return self.torch.backends.cudnn.benchmark and ("MIOpen" if self.hip() else "cuDNN") + " measures its algorithms"

    def took_tunable_op(self):
        tunable = self.torch.cuda.tunable
        tuned = len(tunable.get_results()) if tunable.is_enabled() else 0
        return tuned and f"{tuned} matrix products have a measured algorithm"

    def took_bf16(self):
        return "bf16" in self.notes and "layers compute in bfloat16"

    def took_fused(self):
        return any(g.get("fused") for o in self.optimizers for g in o.param_groups) and "the optimizer is fused"

    def took_foreach(self):
        return any(g.get("foreach") for o in self.optimizers for g in o.param_groups) and "the optimizer works on lists"

    def took_compile(self):
        from torch._dynamo.utils import counters

        graphs, breaks = self.compiled(), sum(counters["graph_break"].values())
        return graphs and f"{graphs} graphs, {breaks} graph breaks"

    took_reduce_overhead = took_compile

    def why_not(self, change):
        """Which part of a change that needs models had no effect."""
        if change not in ("compile", "reduce-overhead", "bf16", "channels-last"):
            return None
        if not self.models:
            return "no model was called with gradients before the first step ended"
        names = ", ".join(sorted({type(m).__name__ for m in self.models}))
        if change == "bf16":
            return f"no Linear or convolution computed in bfloat16 in the calls of {names}"
        if change == "channels-last":
            return f"{names}: no Conv2d"
        counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
        reasons = sorted(counters.get("graph_break", {}).items(), key=lambda reason: -reason[1])
        if reasons:
            return f"the compiler made no graph of {names}: {' '.join(reasons[0][0].split())[:200]}"
        if not counters.get("frames"):
            return f"the compiler saw no code of {names}: model(...) is not how it is called"
        return f"the compiler made no graph of {names}, and gives no reason"

    def took_channels_last(self):
        last = self.torch.channels_last
        found = sum(m.weight.is_contiguous(memory_format=last) and not m.weight.is_contiguous()
                    for top in self.models for m in top.modules() if isinstance(m, self.torch.nn.Conv2d))
        return found and f"{found} convolutions"

    def took_workers(self):
        return "workers" in self.notes and f"loaders with {max(self.loaders)} workers"

    def took_ddp_views(self):
        return any(d.gradient_as_bucket_view for d in self.ddp) and "gradients are views of buckets"

    def took_ddp_bucket(self):
        wanted = int(VALUES["ddp-bucket"]) << 20
        return any(d.bucket_bytes_cap == wanted for d in self.ddp) and f"buckets of {wanted >> 20} MiB"

    def took_threads(self):
        return self.torch.get_num_threads() == int(VALUES["threads"]) and f"{VALUES['threads']} threads"

    def took_segments(self):
        snapshot = self.torch.cuda.memory_snapshot()
        return any(s.get("is_expandable") for s in snapshot) and "segments are expandable"



def prove_changes(hook):
    """After the first step: each change has taken effect, or the variant ends."""
    shared = {"gc": collections_leave_out, "malloc": lambda: in_maps(VALUES["malloc"])}
    for change in VALUES:
        try:
            how = (shared.get(change) or getattr(hook, "took_" + change.replace("-", "_"), no_proof))()
        except Exception as problem:
            how = None
            give_up(change, problem)
        if not how:
            why = getattr(hook, "why_not", lambda change: None)(change)
            give_up(change, "it had no effect here" + (f": {why}" if why else ""))
        line.tell("applied", change, how)


def collections_leave_out():
    import gc

    return gc.get_freeze_count() > 0 and f"{gc.get_freeze_count()} objects left out of collections"


def in_maps(library):
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return library in maps.read() and f"{library} is loaded"


def no_proof():
    return None


# ---------------------------------------------------------------------------- JAX

class Jax:
    """Counts calls of compiled functions; the unit is the one that takes most of the time."""

    def __init__(self, jax):
        self.jax = jax
        self.functions = []
        self.before = self.last = None
        self.turns = Turns(self.sync, lambda: 0, process_memory, self.write_update, self.check)
        original, hook = jax.jit, self

        def jit(*args, **kwargs):
            made = original(*args, **kwargs)
            if hasattr(made, "lower"):
                return Function(hook, made)
            return lambda function: Function(hook, made(function))
        import functools

        jax.jit = functools.wraps(original)(jit)
        compiled, call = jax.stages.Compiled, jax.stages.Compiled.__call__

        def call_compiled(self, *args, **kwargs):
            found = self.__dict__.get("_reprise_try") if hasattr(self, "__dict__") else None
            if found is None:
                found = Counter(hook, "compiled")
                try:
                    self._reprise_try = found
                except AttributeError:
                    return call(self, *args, **kwargs)
            return found.call(lambda: call(self, *args, **kwargs))
        compiled.__call__ = call_compiled

    def sync(self):
        if self.last is not None:
            self.jax.block_until_ready(self.last)

    def leaves(self):
        import numpy

        found = []
        for leaf in self.jax.tree_util.tree_leaves(self.last):
            kind = getattr(leaf, "dtype", None)
            if kind is not None and self.jax.numpy.issubdtype(kind, self.jax.numpy.floating):
                found.append(numpy.asarray(leaf).reshape(-1))
        return found

    def samples(self):
        import numpy

        leaves = self.leaves()
        stride = max(1, sum(v.size for v in leaves) // SAMPLES)
        return [numpy.array(v[::stride], dtype="float32") for v in leaves]

    def write_update(self, path):
        import hashlib

        digest = hashlib.sha256()
        for leaf in self.leaves():
            digest.update(leaf.tobytes())
        write_samples(path, digest.hexdigest(), [(self.turns.steps, [(a - b).tobytes() for a, b in zip(self.samples(), self.before)])])

    def check(self):
        self.before = self.samples()
        for change in VALUES:
            how = None
            if change == "matmul":
                wanted = VALUES[change]
                how = str(self.jax.config.jax_default_matmul_precision) == wanted and f"products use {wanted}"
            elif change.startswith("xla-"):
                how = os.environ.get("XLA_FLAGS", "").strip() and "XLA took the flags"  # it ends a process at one it does not know
            elif change == "malloc":
                how = in_maps(VALUES[change])
            elif change == "gc":
                leave_out_of_collections()
                how = collections_leave_out()
            if not how:
                give_up(change, "it had no effect here")
            line.tell("applied", change, how)

    def has_steps(self):
        return any(f.calls for f in self.functions)

    def tell_probe(self):
        tell = lambda key, value: line.tell("fact", key, value)  # noqa: E731
        best = max(self.functions, key=lambda f: (f.calls > 1, f.ns))
        device = self.jax.devices()[0]
        tell("framework", f"jax {self.jax.__version__}")
        tell("unit", f"jit {self.functions.index(best)}")
        tell("unit-name", best.name)
        tell("device", device.platform)
        tell("device-name", getattr(device, "device_kind", ""))
        tell("matmul", self.jax.config.jax_default_matmul_precision or "default")
        self.last = best.last
        leaves = self.leaves()
        tell("parameters", sum(v.size for v in leaves))
        tell("types", " ".join(sorted({str(v.dtype) for v in leaves})))
        tell("memory", process_memory())
        tell("rss", process_memory())
        line.tell("ready", 0)
        line.hear()
        leave()


class Counter:
    """The calls of one function."""

    depth = 0

    def __init__(self, hook, name):
        self.hook, self.name = hook, name
        self.calls = self.ns = 0
        self.last = None
        self.is_unit = UNIT == f"jit {len(hook.functions)}"
        hook.functions.append(self)

    def call(self, function):
        if not PROBE and not self.is_unit or Counter.depth:
            return function()
        hook = self.hook
        Counter.depth += 1
        began = now()
        if self.is_unit:
            hook.turns.begin()
        try:
            out = function()
        finally:
            Counter.depth -= 1
        if any(isinstance(leaf, hook.jax.core.Tracer) for leaf in hook.jax.tree_util.tree_leaves(out)):
            return out
        self.calls += 1
        if PROBE:
            hook.jax.block_until_ready(out)
            self.ns += (now() - began) * (self.calls > 1)  # the first call compiles
            self.last = out
            if self.calls >= PROBE:
                hook.tell_probe()
        else:
            hook.last = out
            hook.turns.step()
            hook.last = None if hook.turns.left > 1 else out
        return out


class Function:
    """A compiled function, and a count of its calls."""

    def __init__(self, hook, function):
        self.__wrapped__ = function
        self.counter = Counter(hook, getattr(function, "__name__", "function"))

    def __call__(self, *args, **kwargs):
        return self.counter.call(lambda: self.__wrapped__(*args, **kwargs))

    def __get__(self, instance, owner=None):
        import types

        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name):
        return getattr(self.__dict__["__wrapped__"], name)


# ---------------------------------------------------------------------------- TensorFlow

class TensorFlow:
    """Counts outermost calls of tf.functions. Python sees gradients and optimizers only while a function is traced; that tells
    which functions train, and which parameters, before they run for the first time."""

    def __init__(self, tf):
        import threading
        import weakref

        self.tf = tf
        self.counters, self.labels = weakref.WeakKeyDictionary(), {}
        self.functions = []  # those that were called from outside of others
        self.stack = []  # functions that are being called or traced
        self.main, self.thread = threading.get_ident(), threading.get_ident
        self.optimizers, self.counts, self.gradients, self.iterations = [], {}, 0, 0
        self.parameters = []  # variable, stride of its sample, the sample before the first step
        self.known, self.fixed = set(), False
        self.blocks, self.notes, self.datasets, self.graphs = [], set(), [], {}
        self.turns = Turns(self.sync, self.traces, self.memory, self.write_update, self.check, self.keep)
        self.unit = None
        self.label, self.compiled_label = (" ".join(words) for words in (UNIT.split()[1:3], UNIT.split()[3:5]))
        os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")  # variants share a device
        self.seed()
        self.settings()
        self.wrap(type(tf.function(lambda: None)), "__call__", self.call)
        for place in ("polymorphic_function.concrete_function", "function"):  # of new versions, and of old ones
            if "tensorflow.python.eager." + place in sys.modules:
                self.wrap(sys.modules["tensorflow.python.eager." + place].ConcreteFunction, "__call__", self.call)
                break
        self.wrap(tf.GradientTape, "gradient", self.gradient)
        self.wrap(tf.data.Dataset, "__iter__", self.iterate)
        if "keras" in sys.modules and "keras" not in HOOKS:  # some versions import it themselves
            self.keras(sys.modules["keras"])

    @staticmethod
    def wrap(owner, name, call):
        """Replaces a method by call(original, self, ...)."""
        import functools

        original = getattr(owner, name)

        @functools.wraps(original)
        def method(*args, **kwargs):
            return call(original, *args, **kwargs)
        setattr(owner, name, method)

    def seed(self):
        """Where a program gives seeds to operators only, TensorFlow adds this number to them: then they draw what they draw alone."""
        from tensorflow.python.framework import random_seed

        self.tf.random.set_seed(random_seed.DEFAULT_GRAPH_SEED + seed_python())

    def settings(self):
        tf = self.tf
        if "intra-op" in VALUES:
            tf.config.threading.set_intra_op_parallelism_threads(int(VALUES["intra-op"]))
        if "inter-op" in VALUES:
            tf.config.threading.set_inter_op_parallelism_threads(int(VALUES["inter-op"]))
        if "bf16-rewrite" in VALUES:
            tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": True})
        if PROBE or os.environ.get("REPRISE_TRY_SAME_RANDOM"):
            for api in (tf, tf.compat.v2):
                for place, name in ((api.nn, "dropout"), (api.nn.experimental, "stateless_dropout"), (api.nn.experimental, "general_dropout")):
                    if hasattr(place, name):
                        self.wrap(place, name, self.dropout)

    def dropout(self, original, x, rate, *args, **kwargs):
        """In the probe: whether values are dropped. In other runs none are: compiled code and other types draw other numbers."""
        if not PROBE:
            rate = 0.0
        elif not isinstance(rate, (int, float)) or rate:
            self.notes.add("dropout")
        return original(x, rate, *args, **kwargs)

    def keras(self, keras):
        """Once Keras is imported: version 3 with this backend, or version 2."""
        if keras.backend.backend() != "tensorflow":
            return
        base = next((c for c in keras.optimizers.Optimizer.__mro__ if "apply" in c.__dict__), None)
        if base:
            self.wrap(base, "apply", lambda original, optimizer, grads, variables=None, *args, **kwargs: self.apply(
                optimizer, variables or getattr(optimizer, "_trainable_variables", []), lambda: original(optimizer, grads, variables, *args, **kwargs)))
        else:
            legacy = getattr(getattr(keras.optimizers, "legacy", None), "Optimizer", None)
            for cls in {c for c in (keras.optimizers.Optimizer, legacy) if c}:
                self.wrap(cls, "apply_gradients", self.apply_pairs)
        if "bf16" in VALUES:
            keras.mixed_precision.set_global_policy("mixed_bfloat16")
        if PROBE or "bf16" in VALUES:
            self.layers = 0
            self.policy = getattr(keras.mixed_precision, "global_policy", None) or keras.mixed_precision.dtype_policy
            self.wrap(keras.layers.Layer, "__call__", self.layer)
        if "jit-compile" in VALUES:
            self.wrap(keras.Model, "make_train_function", self.compile_model)

    # functions

    def counter(self, function):
        found = self.counters.get(function)
        if found is None:
            name = getattr(getattr(function, "python_function", None), "__name__", None) or "function"
            number = self.labels[name] = self.labels.get(name, -1) + 1
            found = self.counters[function] = FunctionCalls(function, f"{name} {number}")
        return found

    def call(self, original, function, *args, **kwargs):
        if self.thread() != self.main:
            return original(function, *args, **kwargs)
        found, outermost = self.counter(function), not self.stack and self.tf.executing_eagerly()
        is_unit = outermost and found.label == self.label
        if "jit-compile" in VALUES and found.label == self.compiled_label:
            function._jit_compile = True
        if is_unit:
            self.unit = found
            self.turns.begin()
            if "tf32" in VALUES and not self.turns.steps:  # whatever the program has set before
                self.tf.config.experimental.enable_tensor_float_32_execution(True)
        began, looks = now(), outermost and found.calls == 0 and self.turns.steps == 0 and self.wants_graphs()
        if looks:
            looks.enable_graph_collection()
        self.stack.append(found)
        try:
            out = original(function, *args, **kwargs)
        finally:
            self.stack.pop()
        if looks:
            self.look_at(looks)
        if outermost:
            found.calls += 1
            if PROBE:
                self.watch(found, began)
            elif is_unit:
                self.step()
        return out

    def watch(self, found, began):
        if found.calls == 1:
            self.functions.append(found)
        else:
            self.sync()
            found.ns += now() - began
        before, self.iterations = self.iterations, self.count_iterations()
        if found.calls > 1:  # before the first call the optimizer is not known
            found.steps += self.iterations - before
        if found.trains() and found.calls >= PROBE or found.calls >= 10 * PROBE and found.variables() and not self.trains():
            self.tell_probe()

    def trains(self):
        return self.counts or self.gradients or any(f.trains() for f in self.functions)

    def count_iterations(self):
        return sum(int(o.iterations.numpy()) for o in self.optimizers if hasattr(o.iterations, "numpy"))

    def step(self):
        if self.turns.steps == 0 and "gc" in VALUES:
            leave_out_of_collections()
        self.turns.step()

    # gradients and optimizers

    def is_outside(self):
        return not self.stack and self.tf.executing_eagerly() and self.thread() == self.main

    def note(self, variables):
        """Parameters are known before a step has changed them: with what they hold, rounded where that is asked for."""
        variables = [getattr(v, "_value", v) if "keras" in type(v).__module__ else v for v in variables]
        new = [v for v in variables if hasattr(v, "assign") and hasattr(v, "numpy") and v.dtype.is_floating and id(v) not in self.known]
        if variables and self.stack:
            self.stack[0].inner = self.stack[-1]
            self.stack[-1].kept = self.stack[-1].function()  # Keras forgets its own
        if self.fixed or not new:
            return
        stride = max(1, sum(v.shape.num_elements() or 0 for v in new) // SAMPLES)
        for v in new:
            self.known.add(id(v))
            try:
                with self.tf.init_scope():
                    if ROUND:
                        self.round(v)
                    before = self.sample(v, stride)
            except Exception as problem:  # a variable that the function itself creates has no value yet
                if ROUND:
                    line.tell("error", f"the parameters cannot be rounded: {problem}")
                    leave()
                before = None
            self.parameters.append([v, stride, before])

    @staticmethod
    def round(variable):
        """Shows what a difference of this size does to the program."""
        value = variable.numpy()
        if value.dtype != "float32":
            return
        bits = value.view("int32")
        bits = (bits + 0x8000) & ~0xFFFF if ROUND == "bf16" else (bits + 0x1000) & ~0x1FFF if ROUND == "tf32" else bits ^ 1
        variable.assign(bits.view("float32"))

    def gradient(self, original, tape, target, sources, *args, **kwargs):
        variables = [v for v in self.tf.nest.flatten(sources) if hasattr(v, "assign")]
        self.note(variables)
        out = original(tape, target, sources, *args, **kwargs)
        if variables and self.is_outside():
            self.gradients += 1
            if PROBE and self.gradients >= PROBE and not self.counts:
                self.tell_probe()
            if UNIT == "gradient 0":
                self.turns.begin()
                self.step()
        return out

    def apply_pairs(self, original, optimizer, pairs, *args, **kwargs):
        pairs = list(pairs)
        return self.apply(optimizer, [v for _, v in pairs], lambda: original(optimizer, pairs, *args, **kwargs))

    def apply(self, optimizer, variables, original):
        if not any(optimizer is known for known in self.optimizers):
            self.optimizers.append(optimizer)
        self.note(variables)
        outside = self.is_outside()
        if outside:
            self.turns.begin()
        out = original()
        if outside:
            number = self.optimizers.index(optimizer)
            self.counts[number] = self.counts.get(number, 0) + 1
            if PROBE and self.counts[number] >= PROBE:
                self.tell_probe()
            if UNIT == f"optimizer {number}":
                self.step()
        return out

    # changes

    def iterate(self, original, dataset):
        inner = dataset
        while "Options" in type(inner).__name__ and hasattr(inner, "_input_dataset"):
            inner = inner._input_dataset
        if "Prefetch" not in type(inner).__name__:
            self.datasets.append(type(inner).__name__)
            if "prefetch" in VALUES:
                dataset = dataset.prefetch(self.tf.data.AUTOTUNE)
        return original(dataset)

    def layer(self, original, layer, *args, **kwargs):
        """The outputs of the outermost layer are cast back, so that a loss computed outside is in float32 as before."""
        if self.policy().compute_dtype != "float32" and "bf16" not in VALUES:
            self.notes.add("autocast")
        self.notes.add("layers")
        self.layers += 1
        try:
            out = original(layer, *args, **kwargs)
        finally:
            self.layers -= 1

        def back(value):
            if not isinstance(value, self.tf.Tensor) or value.dtype != self.tf.bfloat16:
                return value
            self.notes.add("bf16")
            if self.layers:
                return value
            cast = self.tf.cast(value, self.tf.float32)
            if hasattr(value, "_keras_mask"):
                cast._keras_mask = value._keras_mask
            return cast
        return self.tf.nest.map_structure(back, out) if "bf16" in VALUES else out

    @staticmethod
    def compile_model(original, model, *args, **kwargs):
        model.jit_compile = True
        return original(model, *args, **kwargs)

    # what the turns need

    def on_gpu(self):
        return any("GPU" in (v.device or "") for v, _, _ in self.parameters)

    def sync(self):
        if self.on_gpu():
            self.tf.test.experimental.sync_devices()

    def traces(self):
        count = getattr(self.unit and self.unit.function(), "experimental_get_tracing_count", None)
        return count() if count else 0

    def memory(self):
        """Of the device, or of the process where there is none."""
        return self.tf.config.experimental.get_memory_info("GPU:0")["peak"] if self.on_gpu() else process_memory()

    @staticmethod
    def sample(variable, stride):
        return variable.numpy().reshape(-1)[::stride].astype("float32")

    def keep(self, steps):
        """How much the parameters have changed so far; of those without a value before the first step, since that."""
        for entry in self.parameters:
            if entry[2] is None:
                entry[2] = self.sample(entry[0], entry[1])
        self.fixed = True
        self.blocks.append((steps, [(self.sample(v, stride) - before).tobytes() for v, stride, before in self.parameters]))

    def write_update(self, path):
        import hashlib

        digest = hashlib.sha256()
        for variable, _, _ in self.parameters:
            digest.update(variable.numpy().tobytes())
        if not self.turns.is_kept(self.blocks):
            self.keep(self.turns.steps)
        write_samples(path, digest.hexdigest(), self.blocks)
        self.blocks = []

    # the probe

    def has_steps(self):
        return bool(self.counts or self.gradients or self.functions)

    def choose(self):
        """What a step is, and its name."""
        often = [f for f in self.functions if f.calls > 1] or self.functions
        training = [f for f in often if f.trains()]
        if self.counts and max(self.counts.values()) > 1 or not training and self.counts:
            return f"optimizer {max(self.counts, key=lambda i: (-self.counts[i], i))}", None
        if not training and self.gradients:
            return "gradient 0", None
        best = max(training, key=lambda f: (-f.calls, often.index(f))) if training else max(often, key=lambda f: (bool(f.variables()), f.ns))
        inner = best.inner.label if best.inner and not best.inner.is_keras() else ""
        return f"function {best.label} {inner}", best

    def tell_probe(self):
        tf, (unit, function) = self.tf, self.choose()
        tell = lambda key, value: line.tell("fact", key, value)  # noqa: E731
        tell("framework", f"tensorflow {tf.__version__}")
        tell("unit", unit)
        keras = self.notes & {"layers"}
        if function:
            inner = function.inner or function
            tell("unit-name", "train_function" if function.is_keras() and function.trains() else function.label.rpartition(" ")[0])
            tell("unit-steps", max(1, round(function.steps / max(1, function.calls - 1))))
            tell("compiled", int(any(f and getattr(f.function(), "_jit_compile", None) for f in (function, inner))))
            if not self.parameters:
                self.note(function.variables())
        tell("functions", len(self.functions))
        tell("optimizers", " ".join(sorted({type(o).__name__ for o in self.optimizers})))
        tell("parameters", sum(v.shape.num_elements() or 0 for v, _, _ in self.parameters))
        tell("types", " ".join(sorted({v.dtype.name for v, _, _ in self.parameters})))
        tell("device", ("cuda" if tf.test.is_built_with_cuda() else "gpu") if self.on_gpu() else "cpu")
        tell("tf32", int(self.on_gpu() and tf.config.experimental.tensor_float_32_execution_enabled()))
        tell("autocast", int("autocast" in self.notes))
        tell("dropout", int("dropout" in self.notes))
        tell("models", int(bool(keras)))
        tell("auto-jit", int(tf.config.optimizer.get_jit() == "autoclustering" or "tf_xla_auto_jit=" in os.environ.get("TF_XLA_FLAGS", "")))
        tell("intra-op", tf.config.threading.get_intra_op_parallelism_threads())
        tell("inter-op", tf.config.threading.get_inter_op_parallelism_threads())
        tell("datasets-without-prefetch", len(self.datasets))
        tell("memory", self.memory())
        if self.on_gpu():
            self.tell_device(tell)
        tell("rss", process_memory())
        line.tell("ready", 0)
        line.hear()
        leave()

    def tell_device(self, tell):
        from tensorflow.python.client import device_lib

        gpu = self.tf.config.list_physical_devices("GPU")[0]
        limit = next(d.memory_limit for d in device_lib.list_local_devices() if d.device_type == "GPU")
        tell("device-name", self.tf.config.experimental.get_device_details(gpu).get("device_name", "GPU"))
        tell("device-free", limit - self.tf.config.experimental.get_memory_info("GPU:0")["current"])

    # proofs

    def check(self):
        prove_changes(self)

    def wants_graphs(self):
        """Where graphs after all optimizations are the proof."""
        if not VALUES.keys() & {"auto-jit", "auto-jit-cpu", "bf16-rewrite"}:
            return None
        from tensorflow.python.eager import context

        return context.context()

    def look_at(self, context):
        graphs = context.export_run_metadata().partition_graphs
        context.disable_graph_collection()
        for graph in graphs:
            for nodes in (graph.node, *(f.node_def for f in graph.library.function)):
                for node in nodes:
                    kind = "bfloat16" if "T" in node.attr and node.attr["T"].type == self.tf.bfloat16.as_datatype_enum else node.op
                    self.graphs[kind] = self.graphs.get(kind, 0) + 1

    def took_auto_jit(self):
        found = self.graphs.get("_XlaCompile", 0) + self.graphs.get("XlaLaunch", 0)
        return found and f"clusters that XLA compiles: {found}"

    took_auto_jit_cpu = took_auto_jit

    def took_bf16_rewrite(self):
        found = self.graphs.get("bfloat16", 0)
        return found and f"operators in bfloat16: {found}"

    def took_jit_compile(self):
        found = self.unit and (self.unit.inner or self.unit).function()
        concrete = found._list_all_concrete_functions() if found else []
        return any(c.function_def.attr["_XlaMustCompile"].b for c in concrete) and "XLA compiles the step"

    def took_bf16(self):
        return "bf16" in self.notes and "layers compute in bfloat16"

    def took_tf32(self):
        return self.tf.config.experimental.tensor_float_32_execution_enabled() and "products use TF32"

    def took_prefetch(self):
        return self.datasets and f"data sets that are read ahead: {len(self.datasets)}"

    def took_intra_op(self):
        return self.tf.config.threading.get_intra_op_parallelism_threads() == int(VALUES["intra-op"]) and f"threads: {VALUES['intra-op']}"

    def took_inter_op(self):
        return self.tf.config.threading.get_inter_op_parallelism_threads() == int(VALUES["inter-op"]) and f"threads: {VALUES['inter-op']}"


class FunctionCalls:
    """What is known of one tf.function."""

    def __init__(self, function, label):
        import weakref

        self.function, self.label = weakref.ref(function), label
        self.calls = self.ns = self.steps = 0
        self.inner = self.kept = None  # the innermost function that takes gradients in it

    def trains(self):
        return self.inner is not None or self.steps > 0

    def is_keras(self):
        module = getattr(getattr(self.function(), "python_function", None), "__module__", None) or ""
        return module.split(".")[0] in ("keras", "tf_keras")

    def variables(self):
        function = self.function()
        concrete = getattr(function, "_list_all_concrete_functions", lambda: [function] if function else [])()
        return [v for c in concrete for v in getattr(c, "trainable_variables", None) or c.graph.trainable_variables]


def hook_keras(module):
    for hook in LOADED:
        if isinstance(hook, TensorFlow):
            hook.keras(module)


# ---------------------------------------------------------------------------- starting

HOOKS = {"torch": Torch, "jax": Jax, "tensorflow": TensorFlow, "keras": hook_keras, "tf_keras": hook_keras}
LOADED = []


class Finder:
    """Runs a hook when its module has been imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in HOOKS or path is not None:
            return None
        import importlib.util

        sys.meta_path.remove(Finder)  # the search of the others
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, Finder)
        execute = getattr(getattr(spec, "loader", None), "exec_module", None)
        if not execute:
            return None

        def run(module):
            execute(module)
            hook = HOOKS.pop(name, None)
            if hook:
                try:
                    made = hook(module)
                    LOADED.extend([made] if made else [])
                except Exception as problem:
                    line.tell("error", f"this version of {name} is not known: {type(problem).__name__}: {problem}")
                    leave()
        spec.loader.exec_module = run
        return spec


def place_of(error, text):
    """" (FILE)" of a file that could not be written, where the message does not name it, as that of torch.save: by the innermost
    variable that holds such a name."""
    refused = any(t in text for t in ("ermission denied", "cannot be opened", "readonly database", "unable to open database"))
    found, at = "", error.__traceback__ if refused else None
    while at is not None:
        for value in list(at.tb_frame.f_locals.values()):
            if isinstance(value, (str, os.PathLike)) and os.sep in str(value) and not str(value).endswith(".py") \
                    and not os.path.isdir(value) and os.path.isdir(os.path.dirname(os.path.abspath(value))):
                found = str(value)
        at = at.tb_next
    return f" ({found})" if found and found not in text else ""


def tell_end():
    """At exit: the exception that ended the program, if there was one. Helpers of the program have nothing to tell."""
    import multiprocessing

    if not LOADED or multiprocessing.parent_process() is not None or (line.socket and line.pid != os.getpid()):
        return
    if TALLY:
        for hook in LOADED:
            if place()[0] == 0 and hook.turns.steps:
                hook.turns.tally(hook)
        return
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if PROBE and error is None:  # it has fewer steps than the probe wants to see
        for hook in LOADED:
            if hook.has_steps():
                hook.tell_probe()
    if error is not None and not isinstance(error, SystemExit):
        line.tell("error", f"{type(error).__name__}: {error}{place_of(error, str(error))}")
    elif line.socket:
        line.tell("ended")


def hidden_module():
    """The sitecustomize that this one hides, if there is one."""
    ours = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [p for p in sys.path if not p or os.path.abspath(p) != HERE]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as missing:
        if missing.name != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


def move_imports(moved):
    """What Python would import from the tree of the user's program comes from its copy, also where it was installed to be edited."""
    here, _, there = moved.partition("=")

    def move(path):
        if not isinstance(path, str) or path != here and not path.startswith(here + "/"):
            return path
        moved = there + path[len(here):]
        return moved if os.path.exists(moved) else path
    sys.path[:] = [move(p) for p in sys.path]
    for finder in sys.meta_path:
        mapping = getattr(sys.modules.get(getattr(finder, "__module__", "")), "MAPPING", None)
        if isinstance(mapping, dict):
            mapping.update({name: move(path) for name, path in mapping.items()})


if os.environ.get("REPRISE_TRY_MOVED"):
    move_imports(os.environ["REPRISE_TRY_MOVED"])
if os.environ.get("REPRISE_TRY") or TALLY:
    import atexit

    sys.meta_path.insert(0, Finder)
    atexit.register(tell_end)
hidden_module()
