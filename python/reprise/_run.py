# SPDX-License-Identifier: Apache-2.0
"""Datasets and questions. Each question of the library's table becomes a method of Run and a function of the package, with its
options as keyword arguments."""
import datetime
import functools
import inspect
import keyword
import numbers
import os
import sys
import threading
import time
import weakref
from ctypes import byref, c_char_p, c_size_t, c_void_p, sizeof

from . import _answer, _tables
from . import _library as c
from ._library import lib

_TYPES = {c.FLAG: bool, c.INT: int, c.COUNT: "int | str", c.BYTES: "int | str", c.DURATION: "int | str | timedelta",
          c.RATIO: "float | str", c.TEXT: str, c.PATH: "str | PathLike", c.CHOICE: str}


class Option:
    def __init__(self, row):
        self.name, self.type, self.value = c.text(row.name), row.type, c.text(row.value)
        self.fallback, self.summary, self.repeats = c.text(row.fallback), c.text(row.summary), bool(row.flags & c.REPEAT)
        self.keyword = self.name.replace("-", "_")
        if keyword.iskeyword(self.keyword):
            self.keyword += "_"

    def texts(self, value):
        """The values for the library; none where the option is not set."""
        if value is None:
            return []
        if isinstance(value, (list, tuple)):
            parts = [text for item in value for text in self.texts(item)]
            return parts if self.repeats else [",".join(parts)]
        if self.type == c.FLAG:
            return ["yes" if value else "no"]
        if isinstance(value, bool):
            raise TypeError(f"the option '{self.keyword}' is not a flag: it takes {self.value or 'a value'}")
        if isinstance(value, datetime.timedelta):
            return [str((value.days * 86400 + value.seconds) * 10 ** 9 + value.microseconds * 1000)]
        if isinstance(value, (str, os.PathLike)):
            return [os.fspath(value)]
        if isinstance(value, numbers.Number):
            return [str(value)]
        raise TypeError(f"the option '{self.keyword}' takes no {type(value).__name__}")

    def parameter(self):
        kind = _TYPES.get(self.type, str)
        if self.repeats:
            kind = f"list[{kind if isinstance(kind, str) else kind.__name__}]"
        return inspect.Parameter(self.keyword, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)

    def line(self):
        of = f" ({self.value})" if self.value and self.type != c.FLAG else ""
        end = f" [{self.fallback}]" if self.fallback else ""
        return f"    {self.keyword}: {self.summary}{of}{end}"


class Question:
    """A row of the library's table of questions."""

    def __init__(self, row):
        self.row, self.name, self.accepts = row, c.text(row.contents.name), row.contents.accepts
        self.options, i = {}, 0
        while option := lib.rp_question_option(row, i):
            made = Option(option.contents)
            self.options[made.keyword] = made
            i += 1

    @property
    def doc(self):
        lines = [c.text(self.row.contents.summary)[:1].upper() + c.text(self.row.contents.summary)[1:] + ".", ""]
        if self.row.contents.details:
            lines += [c.text(self.row.contents.details).strip(), ""]
        if self.options:
            lines += ["Options:", *(option.line() for option in self.options.values())]
        return "\n".join(lines).rstrip()

    def settings(self, options):
        pairs = []
        for name, value in options.items():
            if name not in self.options:
                raise TypeError(f"{self.name}() has no option '{name}'; it has {', '.join(self.options) or 'none'}")
            pairs += [(self.options[name].name, text) for text in self.options[name].texts(value)]
        return pairs

    def signature(self, first):
        return inspect.Signature([first, *(option.parameter() for option in self.options.values())],
                                 return_annotation=_answer.record_class(self.row.contents.type, _answer.Answer))


def _questions():
    n = c_size_t()
    rows = lib.rp_question_list(byref(n))
    return {question.name: question for question in (Question(rows[i]) for i in range(n.value))}


questions = _questions()


class _Bar:
    """A line on standard error, from the first second on, where that is a terminal or a notebook."""

    def __init__(self):
        self.shown, self.begun, self.last = False, time.monotonic(), 0.0
        shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
        self.wanted = bool(sys.stderr and sys.stderr.isatty()) or type(shell).__name__ == "ZMQInteractiveShell"

    def __call__(self, what, done, total):
        now = time.monotonic()
        if not self.wanted or now - self.begun < 1 or now - self.last < 0.2:
            return
        self.last, self.shown = now, True
        share = done / total if total else 0
        bar = f"[{'#' * int(share * 30):<30}] {share:4.0%}" if total else ""
        print(f"\r{bar} {what[-60:]:<60}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.shown:
            print("\r" + " " * 100 + "\r", end="", file=sys.stderr, flush=True)


class Run:
    """What `reprise.open` returns: files, folders or archives, and a method for each question about them."""

    def __init__(self, paths, salvage=False, threads=0, progress=True, sources=()):
        self.paths, self._sources = [os.fspath(path) for path in paths], [os.fspath(path) for path in sources]
        self._reopen = functools.partial(Run, self.paths, salvage, threads, progress, self._sources)
        self._progress = progress
        self._lock = threading.RLock()  # a context is used by one thread at a time
        self._watch, self._raised, self._cancel = None, None, False
        self._context, self._dataset, self._tables = c_void_p(), c_void_p(), c_void_p()
        me = weakref.ref(self)  # the library keeps the function, which must not keep the run
        self._function = c.ProgressFn(lambda user, what, done, total: me()._report(what, done, total))
        options = c.ContextOptions(struct_size=sizeof(c.ContextOptions), threads=threads, progress=self._function)
        c.call(lib.rp_ctx_new, byref(options), byref(self._context))
        self._finalizer = weakref.finalize(self, _release, self._context, self._dataset, self._tables, self._function)
        if self.paths:
            names = (c_char_p * len(self.paths))(*(path.encode(errors="surrogateescape") for path in self.paths))
            how = c.OpenOptions(struct_size=sizeof(c.OpenOptions), salvage=salvage)
            self._call(lib.rp_open, self._context, names, len(names), byref(how), byref(self._dataset))

    def _report(self, what, done, total):
        """Called by the library. An exception, Ctrl-C among them, ends the work and is raised where it was asked for."""
        try:
            stop = self._watch(c.text(what) or "", done, total) if self._watch else False
            return 1 if stop or self._cancel else 0
        except BaseException as raised:
            self._raised = raised
            return 1

    def _call(self, function, *arguments):
        with self._lock:
            if not self._finalizer.alive:
                raise ValueError("the run is closed")
            bar = _Bar() if self._progress is True else None
            self._watch, self._raised, self._cancel = bar or self._progress or None, None, False
            try:
                c.call(function, *arguments)
                if self._raised is not None and not isinstance(self._raised, KeyboardInterrupt):
                    raise self._raised  # an interrupted search has an answer, one whose watcher failed has none
            except c.Cancelled:
                if self._raised is not None:
                    raise self._raised from None
                raise
            finally:
                self._watch = None
                if bar:
                    bar.end()

    def ask(self, question, **options):
        """Asks the question of that name; `run.report(...)` is `run.ask("report", ...)`."""
        if question not in questions:
            raise c.UsageError(f"there is no question '{question}'", 1)
        asked = questions[question]
        settings = asked.settings(options)
        if asked.accepts & c.SOURCES:
            settings += [("source", path) for path in self._sources or self.paths]
        array = (c.Setting * len(settings))(*((name.encode(), value.encode(errors="surrogateescape"))
                                              for name, value in settings))
        result = c_void_p()
        dataset = self._dataset if self.paths and not asked.accepts & c.SOURCES else None
        self._call(lib.rp_ask, self._context, dataset, question.encode(), array, len(array), byref(result))

        return _answer.answer(result.value, asked, _drawing(asked, self._reopen, options))

    def _rows(self, function, *arguments):
        """A stream of rows. The traces are read for the first one, and kept."""
        stream = _tables.ArrowStream()
        with self._lock:
            if not self._tables:
                self._call(lib.rp_tables_open, self._dataset, byref(self._tables))
            self._call(function, self._tables, *arguments, byref(stream))
        return stream

    def query(self, sql, limit=0):
        """The rows of an SQL query over the tables (docs/cli/query.md) as a Table; limit: rows at most, 0: all. Wrong SQL raises
        here. Taken a second time, the rows are computed again: keep what `to_arrow()` returns. `run.ask("query", sql=...)` is the
        answer of the command."""
        def rows(*columns):
            if columns:
                raise TypeError("the columns of a query are those that it selects: name them in the SQL")
            return self._rows(lib.rp_tables_query, sql.encode(), limit)
        return _tables.Table("of a query", rows).begin()

    def cancel(self):
        """Ends the question that another thread is asking, soon: Cancelled is raised there."""
        self._cancel = True

    @property
    def inputs(self):
        """The names of the inputs that were found."""
        with self._lock:
            n = lib.rp_dataset_count(self._dataset) if self._dataset else 0
            return [os.fsdecode(lib.rp_dataset_borrow_name(self._dataset, i)) for i in range(n)]

    def close(self):
        """Releases the files. Answers stay valid."""
        with self._lock:
            self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"<reprise.Run {', '.join(self.paths)}: {len(self.inputs)} inputs>"


def _release(context, dataset, tables, function):
    lib.rp_tables_free(tables)  # what was exported stays valid
    lib.rp_dataset_free(dataset)
    lib.rp_ctx_free(context)
    del function  # which the context could call until now


def _drawing(question, reopen, options):
    """A function that asks again for a file of some kind, when it is wanted; it keeps no files open until then."""
    def draw(kind):
        if kind not in question.options:
            return None
        with reopen() as run:
            try:
                return _answer.draw_file(lambda path: run.ask(question.name, **{**options, kind: path}), kind)
            except c.UsageError:  # with these options there is none: `top` draws call stacks only
                return None
    return draw


def ask(question, *paths, **options):
    """Asks a question about paths, or about none: `rp.ask("doctor")`."""
    takes_sources = question in questions and questions[question].accepts & c.SOURCES
    with Run(() if takes_sources else paths, sources=paths if takes_sources else ()) as run:
        return run.ask(question, **options)


def _method(question):
    def method(self, **options):
        return self.ask(question.name, **options)
    method.__name__, method.__qualname__, method.__doc__ = question.name, f"Run.{question.name}", question.doc
    method.__signature__ = question.signature(inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD))
    return method


def function(question):
    """rp.diff("base.json", "new.json", fail_over="2%"): opens the paths, asks, closes."""
    def asks(*paths, **options):
        return ask(question.name, *paths, **options)
    asks.__name__ = asks.__qualname__ = question.name
    asks.__doc__ = question.doc
    asks.__signature__ = question.signature(inspect.Parameter("paths", inspect.Parameter.VAR_POSITIONAL))
    return asks


for _question in questions.values():
    if _question.accepts & (c.TRACES | c.PROGRAMS) and not hasattr(Run, _question.name):
        setattr(Run, _question.name, _method(_question))


def _table(name, doc):
    """The attribute of a table. Where a question has the same name, the table can be called to ask it: run.launches(limit=3)."""
    def table(run):
        def rows(*columns):
            names = (c.c_char_p * len(columns))(*(column.encode() for column in columns))
            return run._rows(lib.rp_tables_stream_columns, name.encode(), names, len(columns))
        if name in questions:
            return _tables.AskedTable(name, rows, functools.partial(run.ask, name))
        return _tables.Table(name, rows)
    return property(table, doc=f"{doc}\n\nCalled, it asks: {questions[name].doc}" if name in questions else doc)


for _name, _doc in _tables.described():
    setattr(Run, _name, _table(_name, _doc))


def open(*paths, salvage=False, threads=0, progress=True):
    """Opens files, folders or archives; nothing is read before a question is asked.

    salvage: of a damaged file, use what precedes the damage.
    threads: how many the questions use; 0: one per core.
    progress: True shows a bar where a person can see it; a function (what, done, total) is called instead, and ends the work by
    returning True.
    """
    if not paths:
        raise TypeError("open() needs a file, a folder or an archive")
    return Run(paths, salvage, threads, progress)
