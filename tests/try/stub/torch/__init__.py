# SPDX-License-Identifier: Apache-2.0
"""A framework with the names of PyTorch that the hook of `try` uses, in plain Python: so that its turns, limits and verdicts
are tested where PyTorch is not installed. A model is a list of numbers; a step takes as long as STEP says."""
import random as _random
import sys as _sys

__version__ = "0.stub"
bfloat16, float32, int8, int16, int32, int64, channels_last = "bfloat16", "float32", "int8", "int16", "int32", "int64", "channels_last"


class Device:
    type = "cpu"


class Tensor:
    """A list of floats."""

    dtype, device, requires_grad, _version = "torch.float32", Device(), False, 0
    is_floating_point, is_inference, dim = (lambda self: True), (lambda self: False), (lambda self: 1)

    def __init__(self, values):
        self.values = list(values)

    def numel(self):
        return len(self.values)

    def detach(self):
        return self

    contiguous = detach

    def clone(self):
        return Tensor(self.values)

    def __setitem__(self, part, other):
        self.values[part] = other.values

    def reshape(self, *_):
        return self

    def __getitem__(self, part):
        return Tensor(self.values[part])

    def to(self, *_args, **_more):
        return Tensor(self.values)

    def view(self, _kind):
        return self

    def element_size(self):
        return 4

    def __sub__(self, other):
        return Tensor(a - b for a, b in zip(self.values, other.values))

    def __mul__(self, other):
        if not isinstance(other, Tensor):
            return Tensor(a * other for a in self.values)
        return Tensor(hash(a) * b for a, b in zip(self.values, other.values))

    def sum(self):
        return sum(self.values)

    def tolist(self):
        return self.values


def arange(first, end, **_):
    return Tensor(range(first, end))


class no_grad:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class inference_mode(no_grad):
    def __init__(self, _on):
        pass


def manual_seed(seed):
    _random.seed(seed)


def is_grad_enabled():
    return True


def is_autocast_enabled(_device):
    return False


def get_num_threads():
    import os

    return int(os.environ.get("OMP_NUM_THREADS", "4"))


def set_float32_matmul_precision(_name):
    pass


def get_float32_matmul_precision():
    return "highest"


class cuda:
    """A device that works after launch(seconds), at the clock of the double of NVML, until somebody waits for it."""

    free_at = 0.0
    is_available = is_initialized = staticmethod(lambda: cuda.free_at > 0)

    @staticmethod
    def launch(seconds):
        import os
        import time

        clock = os.environ.get("FAKE_NVML_FILE")
        mhz = int(open(clock).read()) if clock else 1000
        cuda.free_at = max(cuda.free_at, time.monotonic()) + seconds * 1000 / mhz

    @staticmethod
    def synchronize():
        import time

        time.sleep(max(0.0, cuda.free_at - time.monotonic()))

    max_memory_reserved = staticmethod(lambda: 1 << 30)
    mem_get_info = staticmethod(lambda: (1 << 34, 1 << 35))
    get_device_name = staticmethod(lambda: "stub")
    current_device = staticmethod(lambda: 0)

    @staticmethod
    def get_device_properties(_number):
        class Properties:
            uuid = "stub"
        return Properties


class backends:
    class cudnn:
        benchmark = False


from . import nn, optim, utils  # noqa: E402

_sys.modules[__name__ + ".utils.data"] = utils.data
