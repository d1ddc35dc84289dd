# SPDX-License-Identifier: Apache-2.0
"""Reprise: where the time of a machine-learning program goes, and what would change it.

    import reprise as rp
    run = rp.open("run/")
    report = run.report()
    print(report.step_ns, [finding.id for finding in report.findings])

`help(rp.Run.report)` lists the options of a question. docs/python.md is the manual.
"""
from . import _run
from ._answer import Answer, Record
from ._library import (Cancelled, Defect, Error, FormatError, LimitError, MissingError, NoMemoryError, ReadError,
                       UnsupportedError, UsageError, lib as _lib)
from ._marks import counter, is_recorded, mark, metrics, record, step
from ._run import Run, ask, open
from ._tables import Table

__version__ = _lib.rp_version().decode()
__all__ = ["Answer", "Cancelled", "Defect", "Error", "FormatError", "LimitError", "MissingError", "NoMemoryError", "ReadError",
           "Record", "Run", "Table", "UnsupportedError", "UsageError", "ask", "counter", "is_recorded", "mark", "metrics", "open",
           "record", "step"]


# One function for each question whose name is free: rp.diff("base.json", "new.json"), rp.doctor().
for _question in _run.questions.values():
    if _question.name not in globals():
        globals()[_question.name] = _run.function(_question)
