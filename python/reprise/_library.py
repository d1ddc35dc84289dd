# SPDX-License-Identifier: Apache-2.0
"""libreprise by ctypes: the declarations of <reprise/...> that this package uses, and errors as exceptions.

Calls release the interpreter's lock. Structs that may grow are read through the functions of the library, never by index.
"""
import ctypes
import os
import pathlib
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

HERE = pathlib.Path(__file__).resolve().parent
SONAME = "libreprise.so.0"


class Err(Structure):
    _fields_ = [("code", c_int), ("os_errno", c_int), ("offset", c_uint64), ("line", c_uint32), ("column", c_uint32),
                ("len", c_uint32), ("text", c_char * 992)]


class OptionRow(Structure):
    _fields_ = [("name", c_char_p), ("letter", c_char), ("type", c_int), ("value", c_char_p), ("fallback", c_char_p),
                ("summary", c_char_p), ("flags", c_uint)]


class TypeRow(Structure):
    pass


class FieldRow(Structure):
    _fields_ = [("key", c_char_p), ("title", c_char_p), ("type", c_int), ("unit", c_int), ("flags", c_uint),
                ("offset", c_size_t), ("count_offset", c_size_t), ("item", POINTER(TypeRow)), ("doc", c_char_p)]


TypeRow._fields_ = [("name", c_char_p), ("size", c_size_t), ("fields", POINTER(FieldRow)), ("rows", c_char_p)]


class QuestionRow(Structure):
    _fields_ = [("name", c_char_p), ("group", c_char_p), ("summary", c_char_p), ("details", c_char_p), ("examples", c_char_p),
                ("accepts", c_uint), ("options", c_void_p), ("type", POINTER(TypeRow)), ("anytime", c_int)]


class Setting(Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class Cursor(Structure):
    _fields_ = [("type", POINTER(TypeRow)), ("field", POINTER(FieldRow)), ("at", c_void_p)]


ProgressFn = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint64, c_uint64)


class ContextOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("threads", c_uint), ("progress", ProgressFn), ("progress_user", c_void_p),
                ("distributed", c_int)]


class OpenOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("salvage", c_int)]


class PrintOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("format", c_int), ("color", c_int), ("width", c_int), ("wide", c_int), ("all", c_int),
                ("bars", c_int), ("ascii", c_int)]


# enum rp_option_type, the bits of rp_question.accepts and rp_option.flags, enum rp_type_id, enum rp_print_format
FLAG, INT, COUNT, BYTES, DURATION, RATIO, TEXT, PATH, CHOICE = range(9)
TRACES, PROGRAMS, NONE_TOO, SOURCES = 1, 2, 4, 8
REPEAT = 1
T_BOOL, T_I64, T_U64, T_F64, T_STR, T_RECORD, T_LIST, T_MAP = range(8)
NULLABLE, SCREEN_ONLY = 1, 32
PRINT_TABLE, PRINT_JSON, PRINT_CSV = range(3)
NO_OFFSET = 2 ** 64 - 1

_DECLARATIONS = {
    "rp_version": (c_char_p, []),
    "rp_code_name": (c_char_p, [c_int]),
    "rp_code_exit_status": (c_int, [c_int]),
    "rp_ctx_new": (c_int, [POINTER(ContextOptions), POINTER(c_void_p), POINTER(Err)]),
    "rp_ctx_free": (None, [c_void_p]),
    "rp_open": (c_int, [c_void_p, POINTER(c_char_p), c_size_t, POINTER(OpenOptions), POINTER(c_void_p), POINTER(Err)]),
    "rp_dataset_free": (None, [c_void_p]),
    "rp_dataset_count": (c_size_t, [c_void_p]),
    "rp_dataset_borrow_name": (c_char_p, [c_void_p, c_size_t]),
    "rp_question_list": (POINTER(POINTER(QuestionRow)), [POINTER(c_size_t)]),
    "rp_question_option": (POINTER(OptionRow), [POINTER(QuestionRow), c_size_t]),
    "rp_type_field": (POINTER(FieldRow), [POINTER(TypeRow), c_size_t]),
    "rp_ask": (c_int, [c_void_p, c_void_p, c_char_p, POINTER(Setting), c_size_t, POINTER(c_void_p), POINTER(Err)]),
    "rp_result_print": (c_int, [c_void_p, POINTER(PrintOptions), c_int, POINTER(Err)]),
    "rp_result_find": (c_int, [c_void_p, c_char_p, POINTER(Cursor)]),
    "rp_result_answer": (c_int, [c_void_p]),
    "rp_result_complete": (c_int, [c_void_p]),
    "rp_result_warning": (c_char_p, [c_void_p, c_size_t]),
    "rp_result_free": (None, [c_void_p]),
    "rp_metrics_call_time": (None, [c_char_p, c_int64]),
    "rp_metrics_call_value": (None, [c_char_p, c_int64]),
    "rp_metrics_call_bytes": (None, [c_char_p, c_int64]),
    "rp_metrics_call_count": (None, [c_char_p, c_int64]),
    "rp_metrics_call_report": (c_void_p, [c_char_p, POINTER(Err)]),
    "rp_metrics_call_free": (None, [c_void_p]),
}


def load():
    """The library: that of REPRISE_LIBRARY, of this package, or of the system."""
    inside = HERE / "lib" / SONAME
    named = os.environ.get("REPRISE_LIBRARY")
    library = ctypes.CDLL(named or (str(inside) if inside.exists() else SONAME))
    for name, (result, arguments) in _DECLARATIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = load()


class Error(Exception):
    """A failed call of the library. `kind` is the code ("FORMAT"), `exit_status` what the program would exit with; `offset`,
    `line` and `column` tell where in the input it is, or are None."""

    def __init__(self, message, code=0, err=None):
        super().__init__(message)
        self.message = message
        self.kind = lib.rp_code_name(code).decode()
        self.exit_status = lib.rp_code_exit_status(code)
        self.offset = err.offset if err is not None and err.offset != NO_OFFSET else None
        self.line = err.line or None if err is not None else None
        self.column = err.column or None if err is not None else None
        self.errno = err.os_errno or None if err is not None else None

    def __str__(self):
        return self.message


class UsageError(Error, ValueError):
    """An option or a combination of options that the question does not take."""


class FormatError(Error, ValueError):
    """The input is malformed."""


class LimitError(Error):
    """The input exceeds a limit."""


class UnsupportedError(Error):
    """The input is well-formed, but the question cannot be answered about it."""


class ReadError(Error, OSError):
    """A file cannot be read or written."""


class NoMemoryError(Error, MemoryError):
    """Memory is exhausted."""


class MissingError(Error):
    """A library or device that the question needs is missing."""


class Cancelled(Error):
    """The progress function or Run.cancel() has ended the work."""


class Defect(Error):
    """A defect of Reprise: please report it."""


_CLASSES = {"USAGE": UsageError, "FORMAT": FormatError, "LIMIT": LimitError, "UNSUPPORTED": UnsupportedError, "IO": ReadError,
            "NOMEM": NoMemoryError, "MISSING": MissingError, "CANCELLED": Cancelled, "BUG": Defect}


def call(function, *arguments):
    """Calls a function whose last argument is a struct rp_err, and raises what it reports."""
    err = Err(offset=NO_OFFSET)
    code = function(*arguments, byref(err))
    if code:
        kind = _CLASSES.get(lib.rp_code_name(code).decode(), Error)
        raise kind(err.text.decode(errors="replace"), code, err)


def text(value):
    return value.decode(errors="replace") if value is not None else None
