# SPDX-License-Identifier: Apache-2.0
"""Ranges, marks and counters for `reprise record` (<reprise/record.h>), and the metrics of a process (<reprise/metrics.h>)."""
import contextlib
import ctypes
import threading
import time

from ._library import Err, byref, lib, text


class _Recorder:
    """The functions of the recorder, which is in the process where `reprise record` has started it; else they do nothing."""

    def __init__(self):
        process = ctypes.PyDLL(None)  # the calls take tens of nanoseconds: the interpreter's lock is kept
        self.active = True
        for name, arguments in (("range_begin", [ctypes.c_char_p]), ("range_end", []), ("mark", [ctypes.c_char_p]),
                                ("counter", [ctypes.c_char_p, ctypes.c_double])):
            try:
                function = getattr(process, f"reprise_record_{name}")
                function.restype, function.argtypes = None, arguments
            except AttributeError:
                self.active, function = False, lambda *arguments: None
            setattr(self, name, function)


_recorder = _Recorder()


class record(contextlib.ContextDecorator):
    """A range in the recording: `with rp.record("forward"): ...`, or `@rp.record("forward")` for each call of a function.
    Does nothing unless `reprise record` runs the program. Ranges nest; each ends on the thread where it began."""

    def __init__(self, name):
        self._name = str(name).encode()

    def __enter__(self):
        _recorder.range_begin(self._name)
        return self

    def __exit__(self, *exception):
        _recorder.range_end()


def step(number=None):
    """A step of the program, as a range: `for i in range(100): with rp.step(i): ...`."""
    return record("step" if number is None else f"step {number}")


def mark(name):
    """A moment in the recording."""
    _recorder.mark(str(name).encode())


def counter(name, value):
    """The value of something at this moment, in the recording."""
    _recorder.counter(str(name).encode(), value)


def is_recorded():
    """Whether `reprise record` runs this program."""
    return _recorder.active


class _Timed(contextlib.ContextDecorator, threading.local):  # a decorated function may run on several threads at once
    def __init__(self, name):
        self._name, self._begun = str(name).encode(), []

    def __enter__(self):
        self._begun.append(time.perf_counter_ns())
        return self

    def __exit__(self, *exception):
        lib.rp_metrics_call_time(self._name, time.perf_counter_ns() - self._begun.pop())


class _Metrics:
    """What this process counts, in files that `reprise metrics` reads at any time, also while it runs."""

    def timed(self, name):
        """`with rp.metrics.timed("load batch"): ...`, or a decorator: a distribution of times."""
        return _Timed(name)

    def time(self, name, ns):
        """Adds a time in nanoseconds to a distribution."""
        lib.rp_metrics_call_time(str(name).encode(), int(ns))

    def value(self, name, value):
        """Adds a number to a distribution."""
        lib.rp_metrics_call_value(str(name).encode(), int(value))

    def bytes(self, name, size):
        """Adds a size in bytes to a distribution."""
        lib.rp_metrics_call_bytes(str(name).encode(), int(size))

    def counter(self, name, n=1):
        """Adds to a counter."""
        lib.rp_metrics_call_count(str(name).encode(), int(n))

    def report(self, source=None):
        """The text report of a process, file or folder; of this process without an argument."""
        err = Err()
        at = lib.rp_metrics_call_report(str(source).encode() if source is not None else None, byref(err))
        if not at:
            raise OSError(text(err.text))
        try:
            return text(ctypes.string_at(at))
        finally:
            lib.rp_metrics_call_free(at)


metrics = _Metrics()
