# SPDX-License-Identifier: Apache-2.0
"""Sums up answers in JSON (as arguments or on stdin): one line for each field, with how often it has a value, the sum of
its numbers or of the lengths of its texts, and its first and last number. So a small golden notices a field that is
no longer set, a sum of the wrong things and another order of rows, and shows which field it is. Left out are fields
that are 0 everywhere.

    fields.py [--leave NAME[,NAME...]] [FILE...]"""
import json, sys

LEAVE = {"path", "paths", "version", "command"}


def add(found, path, value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in LEAVE:
                add(found, f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list):
        for inner in value:
            add(found, path, inner)
    elif value is not None:
        found.setdefault(path, []).append(value)


def number(x):
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def line(path, values):
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    texts = [v for v in values if isinstance(v, str)]
    out = f"{path} {len(values)}"
    if numbers:
        out += f" {number(sum(numbers))} {number(numbers[0])} {number(numbers[-1])}"
    if texts:
        out += f" text {sum(map(len, texts))}"
    if any(isinstance(v, bool) for v in values):
        out += f" true {sum(v is True for v in values)}"
    return out


def main():
    args = sys.argv[1:]
    if args[:1] == ["--leave"]:
        LEAVE.update(args[1].split(","))
        args = args[2:]
    for text in [open(a).read() for a in args] or [sys.stdin.read()]:
        found = {}
        add(found, "", json.loads(text))
        for path, values in found.items():
            if any(values):
                print(line(path, values))


main()
