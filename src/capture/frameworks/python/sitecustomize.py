# SPDX-License-Identifier: Apache-2.0
"""Asks frameworks to name their operators in a recording.

`reprise record` puts this folder into PYTHONPATH; Python imports the module of this name when it starts. It waits for a
framework to be imported, and then:

PyTorch     lets the recorder's library observe operators, by the callbacks of PyTorch's own profiler. Where a test of them
            fails, turns its ranges on: NVTX in builds for CUDA, ITT in the others; the recorder's libraries receive them.
            A profiler of the program then has precedence: PyTorch allows one at a time, so ours pauses while it runs.
TensorFlow  runs its own profiler for operators on the host, in windows of a few seconds; each is a file in the folder of
            the recording, which `reprise` joins by the clock. A profiler of the program has precedence here too.
JAX         the same, where there is no GPU. On a GPU, XLA names its instructions by NVTX, which needs nothing here.
            Both wait for the first use of the framework: it may be configured until then, and some programs only import it.

It leaves the program as it is: the folder is removed from sys.path, the sitecustomize that it hides is imported, and
a failure in here is a line on stderr at most.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LONGEST = 60      # seconds of a window, which a program that is killed loses
LARGE = 64 << 20  # bytes of a window, which the program has in memory


def warn(text):
    """A line on stderr, as the recorder's libraries write theirs."""
    sys.stderr.write(f"reprise record: {text}\n")


def option(key, default):
    """The value of `record --set frameworks.KEY=VALUE`."""
    for item in os.environ.get("REPRISE_RECORD_OPTIONS", "").split(";"):
        name, _, value = item.partition("=")
        if name == "frameworks." + key:
            return value
    return default


def nothing():
    pass


def wrap(module, name, before=nothing, after=nothing):
    """Calls something before and after a function of a module."""
    function = getattr(module, name)

    def call(*args, **kwargs):
        before()
        try:
            return function(*args, **kwargs)
        finally:
            after()
    call.__wrapped__ = function
    setattr(module, name, call)


def library(kind=None):
    """The recorder's library for frameworks."""
    import ctypes

    return (kind or ctypes.CDLL)(os.path.join(os.path.dirname(HERE), "reprise-frameworks.so"))


def follow_optimizers(torch):
    """The library is told whose step ends: two optimizers of one class (a GAN's) have ranges of one name."""
    import ctypes

    hook = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
    if hook:
        stepped = library(ctypes.PyDLL).reprise_torch_stepped  # without giving up the global lock
        stepped.argtypes, stepped.restype = [ctypes.c_uint64], None
        models = follow_models(torch)

        def end(optimizer, *_):
            stepped(id(optimizer))
            if models:
                tell_gradients(models)
        hook(end)


def follow_models(torch):
    """Models in DistributedDataParallel whose gradients are not known yet: [number, reference, steps to wait for it]."""
    import functools
    import itertools
    import weakref

    kind = torch.nn.parallel.DistributedDataParallel
    init, models, numbers = kind.__init__, [], itertools.count()

    @functools.wraps(init)
    def call(self, *args, **kwargs):
        init(self, *args, **kwargs)
        models.append([next(numbers), weakref.ref(self), 20])
    kind.__init__ = call
    return models


def note(key, value):
    """A fact about this process."""
    library().reprise_frameworks_note(key.encode(), value.encode())


def tell_gradients(models):
    """The sizes of a model's gradients, in the order in which they become ready. DistributedDataParallel knows it after
    its first backward passes; it is told once."""
    for model in list(models):
        number, made, model[2] = model[0], model[1](), model[2] - 1
        try:
            order = made._get_ddp_logging_data().get("prev_iteration_grad_ready_order_indices", "") if made else ""
            if order and library().reprise_frameworks_ready():
                sizes = [p.numel() * p.element_size() for p in made._module_parameters if p.requires_grad]
                sizes = [str(sizes[int(i)]) for i in order.split(",")]
                for at in range(0, len(sizes), 500):  # a text of the recording has 8,191 bytes
                    note(f"gradients.{number}.{at}", " ".join(sizes[at:at + 500]))
                note("host.processors", str(len(os.sched_getaffinity(0))))
                note("host.ranks", os.environ.get("LOCAL_WORLD_SIZE", "0"))  # torchrun says how many share the machine
                model[2] = 0
        except Exception:
            model[2] = 0  # another version of PyTorch
        if model[2] <= 0:
            models.remove(model)


def tell_rank(rank, size):
    """The rank of a process whose launcher did not number it in the environment, as soon as the program knows it. `record`
    gives it a folder of its rank when it has ended; processes that it starts find it in the environment."""
    def write():
        with open(f"{os.environ['REPRISE_RECORD']}/.rank_{os.getpid()}_{os.uname().nodename}", "w") as out:
            out.write(f"{rank} {size}")
    if size > 1 and not os.environ.get("REPRISE_RANK"):
        os.environ.update(REPRISE_RANK=str(rank), REPRISE_WORLD_SIZE=str(size))
        write()
        os.register_at_fork(after_in_child=write)
        library().reprise_frameworks_tell()


def rank_known_by(owner, name, ask):
    """A function of a module, and its copies in others, after which `ask` returns rank and number of ranks."""
    function = getattr(owner, name)

    def end():
        try:
            tell_rank(*ask())
        except Exception:
            pass  # it failed, or is another version
    wrap(owner, name, after=end)
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is function:  # None stands for a module that must not be imported
            setattr(module, name, getattr(owner, name))


def torch_callbacks(torch):
    """Operators by callbacks from C. False where they are not what the library knows: the library is shown operators
    whose names and sequence numbers are known, and nothing is registered if it does not see them."""
    import ctypes

    seen = library()
    seen.reprise_torch_expect.argtypes = [ctypes.c_int64]
    if not str(getattr(torch, "__version__", "")).startswith("2.") or not seen.reprise_torch_open():
        return False
    try:
        follow_optimizers(torch)
        torch.empty(0)
        good = seen.reprise_torch_saw(b"aten::empty")
        with torch.enable_grad():
            x = torch.ones((), requires_grad=True)
            for _ in range(4):
                seen.reprise_torch_expect(torch._C._autograd._get_sequence_nr())
                x * x
                good = good and seen.reprise_torch_saw(b"aten::mul")
    except Exception:
        good = False
    if good:
        seen.reprise_torch_begin()
    else:
        seen.reprise_torch_close()
    return good


def torch(module):
    groups = sys.modules.get("torch.distributed.distributed_c10d")
    if groups:
        rank_known_by(groups, "init_process_group", lambda: (groups.get_rank(), groups.get_world_size()))
    wanted = option("torch", "callbacks")
    if wanted != "callbacks" or option("shapes", "off") == "on" or not torch_callbacks(module):
        TorchRanges(module, wanted)
    if option("memory", "off") == "on":
        follow_memory(module)


def follow_memory(torch):
    """A snapshot of the device's memory at exit, which `reprise memory` reads; from the first use of CUDA on."""
    import atexit

    pid = os.getpid()

    def end():
        if os.getpid() == pid and torch.cuda.is_initialized():
            rank = os.environ.get("RANK") or os.environ.get("REPRISE_RANK", "0")
            torch.cuda.memory._dump_snapshot(f"{os.environ['REPRISE_RECORD']}/torch_memory_rank{rank}_{pid}.pickle")
    torch.cuda._lazy_call(lambda: torch.cuda.memory._record_memory_history(max_entries=1_000_000))
    atexit.register(end)


class TorchRanges:
    """PyTorch's ranges: on in every thread that Python starts, off while another profiler runs."""

    def __init__(self, torch, wanted):
        import atexit
        import threading

        self.profiler = torch.autograd.profiler
        self.enable = self.profiler._enable_profiler
        self.disable = self.profiler._disable_profiler
        self.local = threading.local()
        self.others = 0
        state = self.profiler.ProfilerState
        shapes = option("shapes", "off") == "on"
        if wanted == "callbacks":
            wanted = "nvtx" if torch.version.cuda else "itt"
        if wanted == "nvtx":
            kind = state.NVTX
        elif torch.profiler.itt.is_available():
            kind, shapes = state.ITT, False
        else:
            raise RuntimeError("this build has neither NVTX nor ITT")
        experimental = torch._C._profiler._ExperimentalConfig()
        self.config = self.profiler.ProfilerConfig(kind, shapes, False, False, False, False, experimental)
        self.on()
        self.yield_to_others()
        self.follow_threads(threading)
        atexit.register(self.off)

    def on(self):
        if not self.others and not getattr(self.local, "on", False):
            self.enable(self.config, set())
            self.local.on = True

    def off(self):
        if getattr(self.local, "on", False):
            self.local.on = False
            self.disable()

    def yield_to_others(self):
        """The functions by which the program starts and stops a profiler of its own."""
        def begin():
            self.off()
            self.others = 1

        def end():
            self.others = 0
            self.on()

        wrap(self.profiler, "_prepare_profiler", before=begin)
        wrap(self.profiler, "_enable_profiler", before=begin)
        wrap(self.profiler, "_disable_profiler", after=end)

    def follow_threads(self, threading):
        """What PyTorch turned on is on for one thread, and for the threads of its backward pass."""
        inner = threading.Thread._bootstrap_inner

        def bootstrap(thread):
            try:
                self.on()
            except Exception:
                pass
            try:
                inner(thread)
            finally:
                self.off()
        threading.Thread._bootstrap_inner = bootstrap


class Windows:
    """Runs a framework's own profiler, in windows, and keeps its XPlane files in the folder of the recording."""

    def __init__(self, name, start, stop):
        import ctypes
        import threading

        self.library = library()
        self.library.reprise_frameworks_folder.restype = ctypes.c_char_p
        self.name, self.start, self.stop = name, start, stop
        self.lock = threading.RLock()
        self.seconds, self.fixed = float(option("window", "5")), option("window", "") != ""
        self.folder, self.others, self.files, self.pid, self.used = None, 0, 0, os.getpid(), False
        self.ended = threading.Event()

    def use(self):
        """The program uses the framework: the first window begins."""
        import atexit
        import threading

        self.used, self.pid = True, os.getpid()
        self.begin()
        threading.Thread(target=self.run, name="reprise-windows", daemon=True).start()
        os.register_at_fork(after_in_child=self.forget)
        atexit.register(self.end)

    def forget(self):
        """The child of a fork has no session and no thread."""
        self.others += 1
        self.folder = None

    def begin(self):
        import tempfile

        with self.lock:
            if self.folder or self.others or not self.used or not self.library.reprise_frameworks_ready():
                return
            folder = tempfile.mkdtemp(prefix="reprise-")
            try:
                self.start(folder)
                self.folder = folder
            except Exception as problem:
                os.rmdir(folder)
                self.others += 1
                warn(f"operators of {self.name} are not recorded: {problem}")

    def finish(self):
        """Ends a window; the bytes that were written."""
        import glob
        import shutil

        size = 0
        with self.lock:
            folder, self.folder = self.folder, None
            if not folder:
                return size
            try:
                self.stop(folder)
                kept = self.library.reprise_frameworks_folder()
                for file in glob.glob(folder + "/**/*.xplane.pb", recursive=True) if kept else ():
                    self.files += 1
                    size += os.path.getsize(file)
                    shutil.move(file, f"{kept.decode()}/.{self.name}_{self.pid}_{self.files}.xplane.pb")
            except Exception as problem:
                warn(f"operators of {self.name} were lost: {problem}")
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return size

    def run(self):
        seconds = self.seconds
        while not self.ended.wait(seconds):
            with self.lock:
                gap = bool(self.folder)
                if gap:
                    self.library.reprise_frameworks_gap(1)
                size = self.finish()
                self.begin()
                if gap:
                    self.library.reprise_frameworks_gap(0)
            if size and not self.fixed:  # what a window's end interrupts is lost: fewer of them, while they are small
                seconds = max(self.seconds, min(2 * seconds, seconds * LARGE / size, LONGEST))

    def end(self):
        self.ended.set()
        if os.getpid() == self.pid:
            self.finish()

    def yield_to(self, module, start, stop):
        """The functions by which the program starts and stops this profiler itself."""
        def begin():
            with self.lock:
                self.finish()
                self.others += 1

        def end():
            self.others -= 1
            self.begin()

        wrap(module, start, before=begin)
        wrap(module, stop, after=end)


def at_first_use(module, windows, functions):
    """Begins the windows and names the framework after the first call of one of these functions, each of which is
    (owner, name). They are then as they were."""
    left = [(owner, name, getattr(owner, name)) for owner, name in functions]

    def used():
        while left:
            setattr(*left.pop())
        try:
            name_version(module)
            if windows:
                windows.use()
        except Exception as problem:
            warn(f"operators of {module.__name__} are not recorded: {problem}")

    def replace(owner, name, function):
        def call(*args, **kwargs):
            result = function(*args, **kwargs)
            if left:
                used()
            return result
        setattr(owner, name, call)

    for item in list(left):
        replace(*item)


def tensorflow_rank():
    """TensorFlow's workers find the cluster and their place in it in TF_CONFIG."""
    import json

    config = json.loads(os.environ["TF_CONFIG"])
    task, cluster = config["task"], config["cluster"]
    workers = [(kind, i) for kind in ("chief", "worker") for i in range(len(cluster.get(kind, ())))]
    return workers.index((task["type"], int(task["index"]))), len(workers)


def tensorflow(module):
    from tensorflow.python.client import session
    from tensorflow.python.eager import context
    from tensorflow.python.profiler import profiler_v2
    from tensorflow.python.training import server_lib

    if os.environ.get("TF_CONFIG"):
        try:
            tell_rank(*tensorflow_rank())
        except Exception:
            pass  # a parameter server, or no cluster
    options = profiler_v2.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0)
    start, stop = profiler_v2.start, profiler_v2.stop
    windows = Windows("tensorflow", lambda folder: start(folder, options=options), lambda _: stop())
    windows.yield_to(profiler_v2, "start", "stop")
    at_first_use(module, windows, [(context.Context, "ensure_initialized"), (session.BaseSession, "__init__"),
                                   (server_lib.Server, "__init__")])


def jax_rank():
    from jax._src.distributed import global_state

    return global_state.process_id, global_state.num_processes


def jax(module):
    from jax._src import profiler, xla_bridge

    windows = None
    if not os.path.exists("/dev/nvidiactl") and not os.path.exists("/dev/kfd"):
        options = module.profiler.ProfileOptions()  # since 0.7; without it Python's functions are traced, which is slow
        options.python_tracer_level = 0
        start, stop = profiler.start_trace, profiler.stop_trace

        def write(folder):
            """What stop_trace() does, without its second file, which takes three times as long."""
            state = profiler._profile_state
            if not hasattr(state, "lock") or not hasattr(state.profile_session, "stop"):
                stop()
                return
            with state.lock:
                space = state.profile_session.stop()
                state.reset()
            with open(folder + "/host.xplane.pb", "wb") as out:
                out.write(space)
        windows = Windows("jax", lambda folder: start(folder, profiler_options=options), write)
        windows.yield_to(profiler, "start_trace", "stop_trace")
        module.profiler.start_trace, module.profiler.stop_trace = profiler.start_trace, profiler.stop_trace
    at_first_use(module, windows, [(xla_bridge, "backends")])
    if hasattr(module, "distributed"):
        rank_known_by(module.distributed, "initialize", jax_rank)


def name_version(module):
    """Who runs, for `info` and `report`."""
    version = str(getattr(module, "__version__", "") or "")
    names = {"torch": "pytorch", "pytorch_lightning": "lightning"}
    if version:
        library().reprise_frameworks_fact(("framework." + names.get(module.__name__, module.__name__)).encode(), version.encode())


def tell_error():
    """At exit: the exception that ended the program, and whether it was in an import. Python keeps it for debuggers. After
    Ctrl-C Python ends itself by the signal, unless something evaluates a text in between, as some modules do when they are
    imported ('traceback'): nothing is imported here but ctypes."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None or isinstance(error, SystemExit):
        return
    frames, at = [], error.__traceback__
    while at:
        frames.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    libraries = ("<frozen", os.path.dirname(os.__file__) + os.sep)  # and their site-packages
    own = [f for f in frames if not f[0].startswith(libraries) and f"{os.sep}site-packages{os.sep}" not in f[0]]
    importing = isinstance(error, ImportError) or any("importlib" in file for file, _ in frames)
    place = own and own[0 if importing else -1]  # the import of the script; else the innermost line of the program
    where = f" at {os.path.basename(place[0])}:{place[1]}" if place else ""
    text = " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(":")
    text = f"{'it ended in import' if importing else 'it ended'}{where}: {text}"
    try:
        library().reprise_frameworks_error(text.encode())
    except OSError:
        return
    with open(os.path.join(os.environ["REPRISE_RECORD"], ".error"), "a") as out:  # for `record`, which tells the first
        out.write(text + "\n")


def fork_alone():
    """From 3.12 on Python counts the threads of the process after a fork, and warns if there are several. In a program
    with one thread the recorder's is the second: it rests meanwhile."""
    known = []

    def before():
        if len(os.listdir("/proc/self/task")) != 2:  # with more of them the warning is the program's own
            return
        if not known:
            known.append(library())
            os.register_at_fork(after_in_parent=known[0].reprise_frameworks_resume)
        known[0].reprise_frameworks_rest()
    if sys.version_info >= (3, 12):
        os.register_at_fork(before=before)


HOOKS = {"torch": torch, "tensorflow": tensorflow, "jax": jax}
LATER = ("tensorflow", "jax")  # named when they are used
HOOKS.update((name, None) for name in ("lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed", "diffusers",
                                       "sentence_transformers", "flax", "keras", "vllm", "trl", "megatron", "timm", "torch_geometric"))


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
            if name not in HOOKS:
                return
            hook = HOOKS.pop(name)
            try:
                if hook:
                    hook(module)
            except Exception as problem:
                warn(f"operators of {name} are not recorded: {problem}")
            try:
                if name not in LATER:
                    name_version(module)
            except Exception:
                pass
        spec.loader.exec_module = run
        return spec


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


if os.environ.get("REPRISE_RECORD"):
    import atexit

    sys.meta_path.insert(0, Finder)
    atexit.register(tell_error)
    fork_alone()
hidden_module()
