#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Add members that no reader knows to the objects of a JSON file: the same must be read from it.

    noise.py IN OUT [KEY...]    not in the objects that are values of these keys, whose members are data

A member comes first and last in each object. Their values have brackets and quotes, which must not end anything.
"""
import json, sys

NOISE = ({"]": ["}", {"\\\"": [None, -1.5e3]}]}, "a \"text\" ]}", [[], {}, True])


def noisy(value, data, state):
    if isinstance(value, list):
        return [noisy(v, data, state) for v in value]
    if not isinstance(value, dict):
        return value
    state[0] += 1
    inner = {k: v if k in data else noisy(v, data, state) for k, v in value.items()}
    return {"unknown first": NOISE[state[0] % 3]} | inner | {"unknown last": NOISE[(state[0] + 1) % 3]}


with open(sys.argv[1]) as f:
    changed = noisy(json.load(f), set(sys.argv[3:]), [0])
with open(sys.argv[2], "w") as f:
    json.dump(changed, f)
