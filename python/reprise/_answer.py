# SPDX-License-Identifier: Apache-2.0
"""Answers as Python objects. A class is made for each record type of the library, from its table of fields, when it is first
needed: fields are attributes and keys, integers are exact, and the class documents each field."""
import base64
import html
import json
import keyword
import os
import pathlib
import tempfile
import typing
import weakref
from ctypes import addressof, byref, sizeof

from . import _library as c
from ._library import lib

_PLAIN = {c.T_BOOL: bool, c.T_I64: int, c.T_U64: int, c.T_F64: float, c.T_STR: str}
_classes = {}  # by the address of the struct rp_type, and whether it is an answer


class Record(dict):
    """A record of an answer: a dict with the keys of `--json`, which are attributes too (apart from names of methods of dict)."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self)}") from None

    def __dir__(self):
        return [*super().__dir__(), *self]

    def __repr__(self):
        def short(value):
            if isinstance(value, (list, dict)) and len(value) > 3:
                return f"<{len(value)} {'fields' if isinstance(value, Record) else 'items'}>"
            return repr(value)
        return f"{type(self).__name__}({', '.join(f'{k}={short(v)}' for k, v in self.items())})"


def _fields(row):
    i = 0
    while field := lib.rp_type_field(row, i):
        if not field.contents.flags & c.SCREEN_ONLY:
            yield field.contents
        i += 1


def _is_plain(row):
    return next(_fields(row)).key is None


def _value_class(field):
    """The class of what a list or map contains, and of a record: a Record or a plain type."""
    fields = list(_fields(field.item))
    if _is_plain(field.item):
        return _PLAIN[fields[0].type]
    if field.type == c.T_MAP and len(fields) == 2:
        return _PLAIN.get(fields[1].type) or _value_class(fields[1])
    return record_class(field.item)


def _annotation(field):
    if field.type in _PLAIN:
        known = field.type == c.T_BOOL or field.type in (c.T_I64, c.T_U64) and not field.flags & c.NULLABLE
        return _PLAIN[field.type] if known else typing.Optional[_PLAIN[field.type]]
    inner = _value_class(field)
    if field.type == c.T_RECORD and field.flags & c.NULLABLE:
        return typing.Optional[inner]
    return {c.T_RECORD: inner, c.T_LIST: list[inner], c.T_MAP: dict[str, inner]}[field.type]


def _property(key, doc):
    return property(lambda self: self[key], doc=doc)


def record_class(row, base=Record):
    """The class of a struct rp_type."""
    key = addressof(row.contents), base
    if key in _classes:
        return _classes[key]
    name = "".join(word.capitalize() for word in row.contents.name.decode().replace("-", "_").split("_"))
    made = _classes[key] = type(name, (base,), {"__module__": "reprise"})
    docs, annotations = [], {}
    for field in _fields(row):
        if field.key is None:
            continue
        field_name, doc = field.key.decode(), field.doc.decode()
        annotations[field_name] = _annotation(field)
        docs.append(f"    {field_name}: {doc}")
        if field_name.isidentifier() and not keyword.iskeyword(field_name) and field_name not in dir(base):
            setattr(made, field_name, _property(field_name, doc))
    made.__doc__ = f"{base.__doc__}\n\nFields:\n" + "\n".join(docs)
    made.__annotations__ = annotations
    made.__match_args__ = tuple(annotations)
    return made


def _convert(value, field):
    if value is None or field.type in _PLAIN:
        return float(value) if field.type == c.T_F64 and value is not None else value
    if field.type == c.T_RECORD:
        return _record(value, field.item)
    fields = list(_fields(field.item))
    if field.type == c.T_LIST:
        if _is_plain(field.item):
            return value
        return [_record(item, field.item) for item in value]
    if len(fields) == 2:
        return {key: _convert(item, fields[1]) for key, item in value.items()}
    return {key: _record(item, field.item) for key, item in value.items()}


def _record(value, row, base=Record):
    made = record_class(row, base)()
    rows = {field.key.decode(): field for field in _fields(row) if field.key is not None}
    for key, item in value.items():
        made[key] = _convert(item, rows[key]) if key in rows else item
    return made


class Answer(Record):
    """The answer to a question: a record, and what it rests on (`trust`)."""

    def _print(self, **options):
        options = c.PrintOptions(struct_size=sizeof(c.PrintOptions), **options)
        with tempfile.TemporaryFile() as file:
            c.call(lib.rp_result_print, self._result, byref(options), file.fileno())
            file.seek(0)
            return file.read().decode()

    def to_text(self, width=100, wide=False, all_rows=False):
        """The table that the program prints."""
        return self._print(format=c.PRINT_TABLE, width=width, wide=wide, all=all_rows)

    def to_json(self):
        """The text of `--json`."""
        return self._print(format=c.PRINT_JSON)

    def to_csv(self):
        """The text of `--csv`: the main list."""
        return self._print(format=c.PRINT_CSV)

    @property
    def exit_status(self):
        """0, or 1 where the answer is no: a regression, a mismatch."""
        return lib.rp_result_answer(self._result)

    @property
    def is_complete(self):
        """Whether nothing is missing in the inputs."""
        return bool(lib.rp_result_complete(self._result))

    @property
    def notes(self):
        """What to know about the inputs, a line each."""
        lines, i = [], 0
        while (line := lib.rp_result_warning(self._result, i)) is not None:
            lines.append(c.text(line))
            i += 1
        return lines

    def picture(self):
        """The picture of the answer as SVG text, or None for questions that draw none."""
        return self._drawn("svg")

    def page(self):
        """The answer as one page of HTML for a browser, or None for questions that have none."""
        return self._drawn("html")

    def _drawn(self, kind):
        if kind not in self._drawings:
            self._drawings[kind] = self._draw(kind)
        return self._drawings[kind]

    def __str__(self):
        return self.to_text()

    def _shown(self, make):
        """What a notebook may lack without losing the answer: its files may be gone since."""
        try:
            return make()
        except (c.Error, OSError, ValueError):
            return None

    def _repr_html_(self):
        picture = self._shown(self.picture)
        page = None if picture else self._shown(self.page)
        shown = monospace(self._shown(self.to_text) or repr(self))
        if picture:
            data = base64.b64encode(picture.encode()).decode()
            return f'<img alt="{type(self).__name__}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">{shown}'
        if page:
            return f'<iframe style="width:100%;height:600px;border:0" srcdoc="{html.escape(page)}"></iframe>{shown}'
        return shown


def monospace(text):
    """A text of columns as HTML, whatever the style of the notebook."""
    return f'<pre style="font-family:monospace;white-space:pre;overflow-x:auto">{html.escape(text)}</pre>'


def answer(result, question, draw):
    """Takes over a struct rp_result; draw(kind) asks again for a file of that kind."""
    made = record_class(question.row.contents.type, Answer)()
    made.__dict__.update(_result=result, _drawings={}, _draw=draw)
    weakref.finalize(made, lib.rp_result_free, result)
    values = json.loads(made.to_json())
    values.pop("schema")
    trust = c.Cursor()
    if "trust" in values and lib.rp_result_find(result, b"trust", byref(trust)):
        made["trust"] = _record(values.pop("trust"), trust.field.contents.item if trust.field else trust.type)
    made.update(_record(values, question.row.contents.type))
    return made


def draw_file(ask, kind):
    """What a question writes into the file of its option `kind`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"drawing.{kind}"
        ask(os.fspath(path))
        return path.read_text()
