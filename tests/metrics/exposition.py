# SPDX-License-Identifier: Apache-2.0
"""The text format of Prometheus: a strict reader, the rules of `promtool check metrics`, and rate() and histogram_quantile() over two
scrapes. Samples are (name, labels as sorted pairs) -> value."""
import math, re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|\})')
UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
# base unit <- other units, as promtool knows them
UNITS = {"seconds": ["milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "weeks"],
         "bytes": ["kilobytes", "megabytes", "gigabytes", "kibibytes", "mebibytes", "gibibytes", "bits"]}
ABBREVIATED = ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"]
TYPES = ["counter", "gauge", "histogram", "summary", "untyped"]


class Family:
    def __init__(self, name):
        self.name, self.type, self.help, self.samples = name, None, None, {}


def read_sample(line):
    name = NAME.match(line)
    at, labels = name.end(), {}
    if line[at:at + 1] == "{":
        at += 1
        while True:
            label = LABEL.match(line, at)
            assert label, f"bad label at {at}: {line!r}"
            assert label[1] not in labels, f"label twice: {line!r}"
            labels[label[1]] = re.sub(r'\\[\\"n]', lambda m: UNESCAPED[m[0]], label[2])
            at = label.end()
            if label[3] == "}":
                break
    assert line[at] == " ", line
    return name[0], tuple(sorted(labels.items())), float(line[at + 1:])


def family_of(name, families):
    for suffix in ("", "_bucket", "_sum", "_count"):
        base = name[:len(name) - len(suffix)] if name.endswith(suffix) else None
        if base in families and (not suffix or families[base].type == "histogram"):
            return base
    raise AssertionError(f"{name}: a sample without HELP and TYPE")


def parse(text):
    """Name -> Family; HELP and TYPE once and before the samples, a family in one piece, no sample twice."""
    families, current = {}, None
    assert text == "" or text.endswith("\n")
    for line in text.splitlines():
        head = re.fullmatch(r"# (HELP|TYPE) (\S+) (.+)", line)
        if head:
            kind, name, rest = head.groups()
            assert NAME.fullmatch(name), name
            if name != current:
                assert name not in families, f"{name}: in two pieces"
                families[name], current = Family(name), name
            family = families[name]
            assert not family.samples and getattr(family, kind.lower()) is None, f"{name}: {kind} twice or late"
            setattr(family, kind.lower(), rest)
        else:
            assert not line.startswith("#"), line
            name, labels, value = read_sample(line)
            assert family_of(name, families) == current, f"{name}: outside its family"
            assert (name, labels) not in families[current].samples, f"twice: {line}"
            families[current].samples[name, labels] = value
    return families


def lint_name(family):
    name, words = family.name, family.name.split("_")
    if not family.help:
        yield "no help text"
    if family.type not in TYPES:
        yield f"type '{family.type}'"
    if (family.type == "counter") != name.endswith("_total"):
        yield "'_total' is for counters, and counters have it"
    if name.endswith(("_bucket", "_sum", "_count")):
        yield "ends like a part of a histogram"
    if any(kind in words for kind in TYPES if kind != "untyped"):
        yield "type in the name"
    if ":" in name or name != name.lower():
        yield "not snake_case, or a colon"
    for base, others in UNITS.items():
        if any(word in words for word in others):
            yield f"the base unit is {base}"
    if any(word in ABBREVIATED for word in words):
        yield "abbreviated unit"


def series(family, suffix):
    return {labels: value for (name, labels), value in family.samples.items() if name == family.name + suffix}


def histograms(family):
    """Labels without le -> [(bound, count)] in the order of the file."""
    out = {}
    for labels, value in series(family, "_bucket").items():
        rest = tuple(pair for pair in labels if pair[0] != "le")
        out.setdefault(rest, []).append((float(dict(labels)["le"]), value))
    return out


def lint_histogram(family):
    counts, sums, found = series(family, "_count"), series(family, "_sum"), histograms(family)
    if not (set(found) == set(counts) == set(sums)):
        yield "buckets, _count and _sum of different series"
    for labels, buckets in found.items():
        bounds, values = [b for b, _ in buckets], [v for _, v in buckets]
        if bounds != sorted(set(bounds)) or bounds[-1] != math.inf:
            yield f"{labels}: bounds out of order, or without +Inf"
        if values != sorted(values) or values[-1] != counts.get(labels):
            yield f"{labels}: counts fall, or +Inf is not _count"


def lint(families):
    for family in families.values():
        for problem in lint_name(family):
            yield f"{family.name}: {problem}"
        for (_, labels) in family.samples:
            for name, _ in labels:
                if name != name.lower() or (name == "le") > (family.type == "histogram") or name == "quantile":
                    yield f"{family.name}: label '{name}'"
        if family.type == "histogram":
            yield from (f"{family.name}: {problem}" for problem in lint_histogram(family))


def rate(before, after, seconds):
    """As Prometheus: a value that fell was set back to zero."""
    return (after - before if after >= before else after) / seconds


def histogram_quantile(q, buckets):
    """buckets: [(bound, rate)], ascending; interpolates linearly inside a bucket, from zero in the first."""
    rank, total = q * buckets[-1][1], buckets[-1][1]
    if not total:
        return math.nan
    at = next(i for i, (_, count) in enumerate(buckets) if count >= rank)
    if at == len(buckets) - 1:
        return buckets[-2][0]
    low, below = (buckets[at - 1] if at else (0.0, 0))
    bound, count = buckets[at]
    return low + (bound - low) * (rank - below) / (count - below)
