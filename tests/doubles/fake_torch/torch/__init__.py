# SPDX-License-Identifier: Apache-2.0
"""What PyTorch is to the recorder: a profiler that one user at a time may enable, and operators that
are ITT tasks of the collector in INTEL_LIBITTNOTIFY64 while it is enabled."""
import ctypes
import os
import types

itt = ctypes.CDLL(os.environ["INTEL_LIBITTNOTIFY64"]) if os.environ.get("INTEL_LIBITTNOTIFY64") else None
if itt:
    itt.__itt_domain_create.restype = itt.__itt_string_handle_create.restype = ctypes.c_void_p


class Id(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("d1", "d2", "d3")]


enabled = []


def enable(config, activities):
    if enabled:
        raise RuntimeError("a profiler is already enabled on this thread")
    enabled.append(config)


def disable():
    enabled.pop()


def op(name, inside=()):
    """An operator, around others."""
    if enabled and itt:
        domain = ctypes.c_void_p(itt.__itt_domain_create(b"PyTorch"))
        handle = ctypes.c_void_p(itt.__itt_string_handle_create(name.encode()))
        itt.__itt_task_begin(domain, Id(), Id(), handle)
    for inner in inside:
        op(inner)
    if enabled and itt:
        itt.__itt_task_end(domain)


version = types.SimpleNamespace(cuda=None)
profiler = types.SimpleNamespace(itt=types.SimpleNamespace(is_available=lambda: True))
_C = types.SimpleNamespace(_profiler=types.SimpleNamespace(_ExperimentalConfig=lambda: None))
autograd = types.SimpleNamespace(profiler=types.SimpleNamespace(
    ProfilerState=types.SimpleNamespace(NVTX="nvtx", ITT="itt"), ProfilerConfig=lambda *a: a,
    _prepare_profiler=lambda *a: None, _enable_profiler=enable, _disable_profiler=disable))
