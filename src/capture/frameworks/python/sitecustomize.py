# SPDX-License-Identifier: Apache-2.0
"""Asks frameworks to name their operators in a recording.

`reprise record` puts this folder into PYTHONPATH; Python imports the module of this name when it starts. It waits for a
framework to be imported, and then:

PyTorch     turns its ranges on: NVTX in builds for CUDA, ITT in the others; the recorder's libraries receive them. A
            profiler of the program has precedence: PyTorch allows one at a time, so ours pauses while it runs.
TensorFlow  records operators with TensorFlow's own profiler, in windows of a few seconds, into the folder of the
            recording, where `reprise` finds them.

It leaves the program as it is: the folder is removed from sys.path, the sitecustomize that it hides is imported, and
a failure in here is a line on stderr at most.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


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


class Torch:
    """PyTorch's ranges: on in every thread that Python starts, off while another profiler runs."""

    def __init__(self, torch):
        import atexit
        import threading

        self.profiler = torch.autograd.profiler
        self.enable = self.profiler._enable_profiler
        self.disable = self.profiler._disable_profiler
        self.local = threading.local()
        self.others = 0
        state = self.profiler.ProfilerState
        shapes = option("shapes", "on") != "off"
        wanted = option("torch", "nvtx" if torch.version.cuda else "itt")
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
        def wrap(name, before, after):
            function = getattr(self.profiler, name)

            def call(*args, **kwargs):
                before()
                try:
                    return function(*args, **kwargs)
                finally:
                    after()
            call.__wrapped__ = function
            setattr(self.profiler, name, call)

        def begin():
            self.off()
            self.others = 1

        def end():
            self.others = 0
            self.on()

        wrap("_prepare_profiler", begin, lambda: None)
        wrap("_enable_profiler", begin, lambda: None)
        wrap("_disable_profiler", lambda: None, end)

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


HOOKS = {"torch": Torch}


class Finder:
    """Runs a hook when its module has been imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        hook = HOOKS.get(name)
        if not hook or path is not None:
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
            if HOOKS.pop(name, None):
                try:
                    hook(module)
                except Exception as problem:
                    warn(f"operators of {name} are not recorded: {problem}")
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
    sys.meta_path.insert(0, Finder)
hidden_module()
