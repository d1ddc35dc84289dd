#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print the fields of a protobuf, without its schema: number, value; what can be read as a message is one.

    raw_proto.py FILE
"""
import struct, sys


def varint(b, at):
    value = shift = 0
    while True:
        value |= (b[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if b[at - 1] < 128:
            return value, at


def fields(b):
    """(number, value) of each field, or None: it is not a message."""
    at, out = 0, []
    try:
        while at < len(b):
            key, at = varint(b, at)
            number, wire = key >> 3, key & 7
            if wire == 0:
                value, at = varint(b, at)
            elif wire == 2:
                n, at = varint(b, at)
                value, at = bytes(b[at:at + n]), at + n
            elif wire in (1, 5):
                n = 8 if wire == 1 else 4
                value, at = struct.unpack("<d" if n == 8 else "<f", b[at:at + n])[0], at + n
                value = f"{value!r} = {int.from_bytes(b[at - n:at], 'little'):#x}"
            else:
                return None
            if not number or at > len(b):
                return None
            out.append((number, value))
    except (IndexError, struct.error):
        return None
    return out


def show(b, indent):
    for number, value in fields(b):
        inner = fields(value) if isinstance(value, bytes) and value else None
        text = isinstance(value, bytes) and value.isascii() and value.decode("ascii").isprintable()
        if inner and not (text and len(value) > 2):
            print(f"{indent}{number}:")
            show(value, indent + " ")
        else:
            print(f"{indent}{number} {value if not text else ascii(value.decode())}")


show(open(sys.argv[1], "rb").read(), "")
