# SPDX-License-Identifier: Apache-2.0
"""Tables of a run through the Arrow PyCapsule interface. The buffers stay those of the library; pyarrow, polars, pandas and DuckDB
are imported only where one of them is asked for."""
import atexit
import ctypes
import errno
import functools
import html
import itertools
import re
from ctypes import (CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, addressof, byref, c_char_p, c_double, c_int, c_int8, c_int32, c_int64,
                    c_size_t, c_uint8, c_uint32, c_void_p, cast, py_object, sizeof)

from . import _library as c
from ._answer import Record, monospace
from ._library import lib


class ArrowSchema(Structure):
    pass


class ArrowArray(Structure):
    pass


class ArrowStream(Structure):
    pass


ArrowSchema._fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64), ("n_children", c_int64),
                        ("children", POINTER(POINTER(ArrowSchema))), ("dictionary", POINTER(ArrowSchema)),
                        ("release", CFUNCTYPE(None, POINTER(ArrowSchema))), ("private_data", c_void_p)]
ArrowArray._fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
                       ("n_children", c_int64), ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(ArrowArray))),
                       ("dictionary", POINTER(ArrowArray)), ("release", CFUNCTYPE(None, POINTER(ArrowArray))),
                       ("private_data", c_void_p)]
ArrowStream._fields_ = [("get_schema", CFUNCTYPE(c_int, POINTER(ArrowStream), POINTER(ArrowSchema))),
                        ("get_next", CFUNCTYPE(c_int, POINTER(ArrowStream), POINTER(ArrowArray))),
                        ("get_last_error", CFUNCTYPE(c_char_p, POINTER(ArrowStream))),
                        ("release", CFUNCTYPE(None, POINTER(ArrowStream))), ("private_data", c_void_p)]


class _TableRow(Structure):
    _fields_ = [("name", c_char_p), ("doc", c_char_p), ("ncolumns", c_size_t)]


class _ColumnRow(Structure):
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("unit", c_char_p), ("doc", c_char_p), ("nullable", c_int)]


for _name, _result, _arguments in (
        ("rp_tables_open", c_int, [c_void_p, POINTER(c_void_p), POINTER(c.Err)]),
        ("rp_tables_free", None, [c_void_p]),
        ("rp_tables_list", c_size_t, [c_size_t, c_size_t, POINTER(_TableRow), c_size_t]),
        ("rp_tables_columns", c_size_t, [c_char_p, c_size_t, c_size_t, POINTER(_ColumnRow), c_size_t]),
        ("rp_tables_stream_columns", c_int, [c_void_p, c_char_p, POINTER(c_char_p), c_size_t, POINTER(ArrowStream), POINTER(c.Err)]),
        ("rp_tables_query", c_int, [c_void_p, c_char_p, c_size_t, POINTER(ArrowStream), POINTER(c.Err)])):
    getattr(lib, _name).restype, getattr(lib, _name).argtypes = _result, _arguments


# ---------------------------------------------------------------- capsules

_held = {}  # of living capsules, by the address of the struct: the struct, and the address of the capsule
_new_capsule = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
# The destructor has the address of an object that is going away: it must not become a reference.
_capsule_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_set_destructor = PYFUNCTYPE(c_int, c_void_p, c_void_p)(("PyCapsule_SetDestructor", ctypes.pythonapi))


def _destructor(name):
    @PYFUNCTYPE(None, c_void_p)
    def destroy(capsule, held=_held, pointer=_capsule_pointer):
        _release(held.pop(pointer(capsule, name))[0])
    return name, destroy  # the capsule keeps neither: they live as long as the module


def _release(struct):
    """Of a struct that a consumer has taken, nothing is left to release."""
    if struct.release:
        struct.release(byref(struct))


_SCHEMA, _STREAM = _destructor(b"arrow_schema"), _destructor(b"arrow_array_stream")


def _capsule(struct, kind):
    name, destroy = kind
    capsule = _new_capsule(addressof(struct), name, cast(destroy, c_void_p))
    _held[addressof(struct)] = struct, id(capsule)
    return capsule


@atexit.register
def _let_capsules_go():
    """A capsule may outlive this module, and with it its destructor."""
    for _, capsule in _held.values():
        _set_destructor(capsule, None)


# ---------------------------------------------------------------- reading without a package

_SHOWN = 10  # rows of a table in a notebook
_VALUES = {b"c": c_int8, b"i": c_int32, b"I": c_uint32, b"l": c_int64, b"g": c_double}


def _bits(buffer, begin, n):
    bits = cast(buffer, POINTER(c_uint8))
    return [bool(bits[i >> 3] >> (i & 7) & 1) for i in range(begin, begin + n)]


def _texts(array, begin, n):
    ends, data = cast(array.buffers[1], POINTER(c_int64)), array.buffers[2]
    return [ctypes.string_at(data + ends[i], ends[i + 1] - ends[i]).decode() if ends[i + 1] > ends[i] else ""
            for i in range(begin, begin + n)]


def _values(schema, array):
    """The values of a column as a list; None where there is none."""
    begin, n = array.offset, array.length
    if n == 0:
        return []
    if schema.format == b"U":
        values = _texts(array, begin, n)
    elif schema.format == b"b":
        values = _bits(array.buffers[1], begin, n)
    else:
        values = cast(array.buffers[1], POINTER(_VALUES[schema.format]))[begin:begin + n]
    valid = _bits(array.buffers[0], begin, n) if array.null_count and array.buffers[0] else [True] * n
    if schema.dictionary:
        words = _values(schema.dictionary.contents, array.dictionary.contents)
        return [words[value] if there else None for value, there in zip(values, valid)]
    return [value if there else None for value, there in zip(values, valid)]


# ---------------------------------------------------------------- tables

class Table:
    """Rows as Arrow columns, for whatever takes the Arrow PyCapsule interface: `pyarrow.table(t)`, `polars.DataFrame(t)`,
    `duckdb.sql("from t")`. Without any of them `for row in t` gives records. Nothing is read before it is wanted."""

    def __init__(self, name, make):
        self._name, self._make, self._length = name, make, None
        self._ready = []  # a stream that was made, and of which no row was taken

    def begin(self):
        """Makes the stream now."""
        self._ready.append(self._stream())
        return self

    def _stream(self):
        return self._ready.pop() if self._ready else self._make()

    def _schema(self):
        stream, schema = self._stream(), ArrowSchema()
        try:
            _check(stream, stream.get_schema(byref(stream), byref(schema)))
        finally:
            self._ready.append(stream)
        return schema

    def __del__(self):
        for stream in self._ready:
            _release(stream)

    def __arrow_c_stream__(self, requested_schema=None):
        """The rows as a PyCapsule "arrow_array_stream": a batch for each rank."""
        return _capsule(self._stream(), _STREAM)

    def __arrow_c_schema__(self):
        """The columns as a PyCapsule "arrow_schema"; the metadata of a field has its "unit" and "doc"."""
        return _capsule(self._schema(), _SCHEMA)

    def select(self, *columns):
        """The same rows with these columns only, in this order; the others are not made."""
        if not columns:
            raise TypeError("select() needs the names of columns")
        return Table(self._name, functools.partial(self._make, *columns)).begin()

    @property
    def columns(self):
        """The names of the columns."""
        schema = self._schema()
        try:
            return _names(schema)
        finally:
            _release(schema)

    def __len__(self):
        if self._length is None:
            self._length = sum(self._batches(lambda schema, batch: batch.length))
        return self._length

    def __iter__(self):
        return self._records()

    def _records(self, most=None):
        """The rows; of each batch the first `most` only."""
        for names, columns in self._batches(lambda schema, batch: (_names(schema), _columns(schema, batch, most))):
            for row in zip(*columns):
                yield Record(zip(names, row))

    def _batches(self, read):
        """What read(schema, batch) makes of each batch, which is valid only there."""
        stream, schema, batch = self._stream(), ArrowSchema(), ArrowArray()
        try:
            _check(stream, stream.get_schema(byref(stream), byref(schema)))
            while True:
                _check(stream, stream.get_next(byref(stream), byref(batch)))
                if not batch.release:
                    return
                value = read(schema, batch)
                _release(batch)
                yield value
        finally:
            for struct in (batch, schema, stream):
                _release(struct)

    def to_arrow(self):
        """A pyarrow.Table, on the memory of the library."""
        import pyarrow
        return pyarrow.RecordBatchReader.from_stream(self).read_all()  # pyarrow.table() would import pandas first

    def to_polars(self):
        """A polars.DataFrame; names and kinds are categories."""
        import polars
        return polars.DataFrame(self)

    def to_pandas(self):
        """A pandas.DataFrame. Columns that may lack values have pandas' nullable types, as floats would round nanoseconds; names
        and kinds are categories. Needs pyarrow."""
        import pandas
        import pyarrow
        table = self.to_arrow().unify_dictionaries()
        nullable = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.int32(): pandas.Int32Dtype(),
                    pyarrow.uint32(): pandas.UInt32Dtype(), pyarrow.bool_(): pandas.BooleanDtype()}
        return pandas.DataFrame({field.name: table[i].to_pandas(types_mapper=nullable.get if field.nullable else None)
                                 for i, field in enumerate(table.schema)}, copy=False)

    def _repr_html_(self):
        """The first rows, for notebooks."""
        try:
            first, columns, rows = list(itertools.islice(self._records(_SHOWN), _SHOWN)), self.columns, len(self)
        except (c.Error, OSError, ValueError) as error:  # its files may be gone since
            return monospace(f"{self._name}: {error}")
        cells = "".join("<tr>" + "".join(_cell(name, value) for name, value in row.items()) + "</tr>" for row in first)
        head = "".join(f"<th>{html.escape(name[:-3] + ' (ms)' if _is_time(name) else name)}</th>" for name in columns)
        return (f"<p>{html.escape(self._name)}: {rows} rows</p><table style='font-family:monospace'><thead><tr>{head}</tr></thead>"
                f"<tbody>{cells}</tbody></table>")

    def __repr__(self):
        try:
            return f"<reprise.Table {self._name}: {', '.join(self.columns)}>"
        except (c.Error, OSError, ValueError) as error:
            return f"<reprise.Table {self._name}: {error}>"


def _is_time(name):
    """Whether a column is shown in milliseconds: what counts from the clock's own zero is shown as it is."""
    return name.endswith("_ns") and name not in ("ts_ns", "end_ns")


def _short(name):
    """A kernel's name without result, namespaces, arguments of templates and of the call."""
    if "(" not in name or not re.match(r"(void |[\w:]+ )?[\w:]*(<|\()", name) or "::" not in name and not name.startswith("void "):
        return name
    text, depth = name.split(" ", 1)[-1] if name.startswith("void ") else name, 0
    kept = []
    for letter in text.replace("(anonymous namespace)::", ""):
        depth += letter in "<("
        if not depth:
            kept.append(letter)
        depth -= letter in ">)"
    return "".join(kept).strip().rsplit("::", 1)[-1] or name


def _cell(name, value):
    if value is None:
        return "<td></td>"
    if _is_time(name):
        return f"<td style='text-align:right' title='{value} ns'>{value / 1e6:.6g}</td>"
    if isinstance(value, str) and (brief := _short(value)) != value:
        return f"<td title='{html.escape(value)}'>{html.escape(brief)}</td>"
    return f"<td>{html.escape(str(value))}</td>"


class AskedTable(Table):
    """A table whose name is also a question: called, it asks that."""

    def __init__(self, name, make, ask):
        super().__init__(name, make)
        self._ask = ask

    def __call__(self, **options):
        return self._ask(**options)


def _check(stream, code):
    if code:
        message = c.text(stream.get_last_error(byref(stream)))
        raise MemoryError(message) if code == errno.ENOMEM else OSError(code, message)


def _names(schema):
    return [c.text(schema.children[i].contents.name) for i in range(schema.n_children)]


def _columns(schema, batch, most=None):
    columns = []
    for i in range(batch.n_children):
        column = batch.children[i].contents
        column.length = column.length if most is None else min(most, column.length)
        columns.append(_values(schema.children[i].contents, column))
    return columns


def described():
    """The tables of the library: names, and what a row and its columns are."""
    table, i = _TableRow(), 0
    while lib.rp_tables_list(i, 1, byref(table), sizeof(table)):
        columns = (_ColumnRow * table.ncolumns)()
        lib.rp_tables_columns(table.name, 0, len(columns), columns, sizeof(_ColumnRow))
        lines = [f"    {c.text(row.name)}: {c.text(row.doc)} ({c.text(row.type)}{', or None' if row.nullable else ''})"
                 for row in columns]
        doc = c.text(table.doc)
        yield c.text(table.name), f"{doc[:1].upper()}{doc[1:]}.\n\nColumns:\n" + "\n".join(lines)
        i += 1
