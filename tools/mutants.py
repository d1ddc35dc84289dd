# SPDX-License-Identifier: Apache-2.0
"""Finds the places of a C file that tools/mutate may change, and what to put there.

The file is cut into tokens. Comments, texts, includes and types are left alone; at file scope only numbers
change. The sources are formatted, so a binary operator is one with a space on both sides. What is found
need not compile: the compiler rejects the rest. Left out is what no test run could notice: memory that is not
released or larger than needed (the sanitizers look after memory), a lack of memory that is not noticed, and `<=` for
`<` in a minimum or maximum."""
import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|\\\n)
  | (?P<hash>^[ \t]*\#[ \t]*(?P<word>\w+)[ \t]*)
  | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[uUlLfF]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\||.)
""", re.X | re.S | re.M)
COMPARISONS = {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",)}
OPERATORS = {"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "&&": "||", "||": "&&", "<<": ">>", ">>": "<<"}
ORDERS = {"RP_UP": "RP_DOWN", "RP_DOWN": "RP_UP"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "<<=", ">>="}
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "do", "else", "case", "goto", "default", "_Static_assert"}
RELEASES = re.compile(r"^(free|munmap|close|closedir|va_end|rp_\w+_(free|release|close))$")
ALLOCATIONS = re.compile(r"^(malloc|calloc|realloc|reallocarray|RP_ARENA_NEW|rp_arena_\w+|rp_\w+_reserve)$")
NEEDS = re.compile(r"^(RP_TRY\()?rp_(err_need|arena_check)\(")  # no test runs out of memory
EQUALITIES = re.compile(r"^(str(case)?cmp|strn(case)?cmp|memcmp)$")
SYMMETRIC = re.compile(r"^(rp_ns_sum|fmin|fmax|hypot)$")
ENDS = {",", ";", ")", "]", "}", "?", ":"}
LOOSER = {  # the operators that end the right operand of one
    "*": set("*/%+-<>&|^") | {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"},
    "+": set("+-<>&|^") | {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"},
    "<": set("<>&|^") | {"<=", ">=", "==", "!=", "&&", "||"},
    "&&": {"||"}, "||": set()}
LOOSER |= {"/": LOOSER["*"], "-": LOOSER["+"]} | {op: LOOSER["<"] for op in ("<=", ">", ">=")}


def moved(digits):
    """A number 20 % up and 20 % down; whole numbers move by at least one."""
    if re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", digits):
        value, show = int(digits, 16 if digits[:2] in ("0x", "0X") else 10), hex if digits[:2] in ("0x", "0X") else str
        step = max(1, round(value * 0.2))
        return [show(value + step)] + ([show(value - step)] if value >= step else [])
    return [repr(float(digits) * 1.2), repr(float(digits) * 0.8)]


@dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    code: bool  # in the body of a function or macro


@dataclass(frozen=True)
class Change:
    kind: str
    start: int
    end: int
    new: str
    same: bool  # it changes nothing: the size of an array, the order of texts that are compared or of terms, a flag


def tokens_of(source):
    """The tokens of the code; of preprocessor lines only the bodies of macros."""
    tokens, at, depth, body, macro_end = [], 0, 0, False, 0
    while at < len(source):
        m = TOKEN.match(source, at)
        at = m.end()
        if m["hash"]:
            line_end = re.compile(r"(?:\\\n|[^\n])*").match(source, at).end()
            if m["word"] != "define":
                at = line_end
            else:
                at, macro_end = re.compile(r"\w+(\([^)]*\))?").match(source, at).end(), line_end
        elif not m["skip"]:
            token = Token(m.lastgroup, m[0], m.start(), m.end(), body or m.start() < macro_end)
            if m.start() >= macro_end:
                if m[0] == "{":
                    body |= depth == 0 and bool(tokens) and tokens[-1].text == ")"
                    depth += 1
                elif m[0] == "}":
                    depth -= 1
                    body &= depth > 0
            tokens.append(token)
    return tokens


def pairs_of(tokens):
    """For each opening bracket the index of the closing one, and the other way round."""
    pairs, open_at = {}, []
    for i, t in enumerate(tokens):
        if t.text in ("(", "[", "{") and t.kind == "op":
            open_at.append(i)
        elif t.text in (")", "]", "}") and t.kind == "op" and open_at:
            j = open_at.pop()
            pairs[i], pairs[j] = j, i
    return pairs


class Finder:
    def __init__(self, source):
        self.source, self.tokens = source, tokens_of(source)
        self.pairs, self.found, self.untouched = pairs_of(self.tokens), [], 0
        rules = {"number": self.number, "name": self.name, "op": self.operator}
        for i, t in enumerate(self.tokens[:-1]):
            if t.kind in rules and i > 0 and t.start >= self.untouched:
                rules[t.kind](i, t)

    def add(self, kind, start, end, new, same=False):
        self.found.append(Change(kind, start, end, new, same))

    def text(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def binary(self, t):
        return self.source[t.start - 1].isspace() and self.source[t.end].isspace()

    def operand_end(self, i, stops):
        """The end of the operand that begins at token i: before a bracket that closes, or a token of stops."""
        while i < len(self.tokens):
            t = self.tokens[i]
            if t.kind == "op" and (t.text in ENDS or (t.text in stops and self.binary(t))):
                break
            i = self.pairs.get(i, i) + 1 if t.text in ("(", "[", "{") else i + 1
        return self.tokens[i - 1].end

    def begins_statement(self, i):
        before = self.text(i - 1)
        if before == ")":
            return self.text(self.pairs.get(i - 1, 0) - 1) in ("if", "for", "while")
        return before in (";", "{", "}", "else")

    def declares(self, i):
        """Whether the statement or member that token i belongs to is a declaration: two names in a row begin it, and
        the token is not in its initializer."""
        while i > 0 and self.text(i - 1) not in (";", "{", "}", "(", "="):
            i = self.pairs.get(i - 1, i - 1) if self.text(i - 1) in (")", "]") else i - 1
        if self.text(i - 1) in ("(", "="):
            return False
        while self.text(i) in ("static", "const", "struct", "union", "enum", "unsigned", "signed"):
            i += 1
        return self.tokens[i].kind == "name" and self.text(i) not in KEYWORDS and (
            self.tokens[i + 1].kind == "name" or self.text(i + 1) == "*")

    def number(self, i, t):
        if self.text(i - 1) == "{" and self.text(i + 1) == "}":
            return  # {0}
        if self.text(i - 1) == "[" and self.text(i + 1) == "]" and self.tokens[i - 2].kind == "name" and (
                self.tokens[i - 3].kind == "name" or self.text(i - 3) == "*") and self.text(i - 3) not in KEYWORDS:
            return  # the size of an array
        open_at, close_at = i - 1, i + 1  # the brackets around a product such as [3 * RANK]
        open_at -= 2 * (self.text(open_at) == "*")
        close_at += 2 * (self.text(close_at) == "*")
        size = self.text(open_at) == "[" and self.text(close_at) == "]" and self.declares(i)
        digits = re.match(r"0[xX][0-9a-fA-F]+|[\d.]+(?:[eE][-+]?\d+)?", t.text)[0]
        suffix = t.text[len(digits):]
        if re.fullmatch(r"0[xX].*|\d+", digits):
            value = int(digits, 8 if re.fullmatch(r"0\d+", digits) else 0)
            news = [value + 1] + ([value - 1] if value > 0 else []) + ([5 * value] if value > 1 else [])
        else:
            news = [float(digits) * 2, float(digits) / 2] if float(digits) else [1.0]
        if self.names_number(i):
            for new in moved(digits):
                self.add("moved constant", t.start, t.end, new + suffix)
            return
        flags = not t.code and digits == "0" and self.tokens[i - 2].kind == "text" and self.text(i + 1) == ")"
        letter = not t.code and digits == "0" and self.text(i + 2).startswith("RP_OPT_")  # of an option without one
        for new in news:  # the flag 1 of a field, RP_NULLABLE, says something of values that are absent only
            self.add("constant", t.start, t.end, f"{new}{suffix}", size or letter or (flags and new == 1))

    def names_number(self, i):
        """Whether token i is all that a macro stands for: `#define NAME 0.05`."""
        t = self.tokens[i]
        begin = self.source.rfind("\n", 0, t.start) + 1
        return bool(re.fullmatch(r"[ \t]*#[ \t]*define[ \t]+\w+[ \t]+", self.source[begin:t.start]))

    def name(self, i, t):
        if t.text in ORDERS and self.text(i + 1) == "(":  # of a sort, at file scope
            self.add("flipped order", t.start, t.end, ORDERS[t.text])
        if not t.code:
            return
        if t.text in ("true", "false"):
            self.add("constant", t.start, t.end, "false" if t.text == "true" else "true")
        elif t.text in ("if", "while") and self.text(i + 1) == "(":
            start, end = self.tokens[i + 1].end, self.tokens[self.pairs[i + 1]].start
            self.add("negated condition", start, end, f"!({self.source[start:end]})")
        elif t.text in ("break", "continue") and self.text(i + 1) == ";":
            self.add("removed jump", t.start, t.end, "(void)0")
        elif t.text not in KEYWORDS and self.text(i + 1) == "(" and i + 1 in self.pairs:
            self.call(i, t)
        elif self.begins_statement(i):
            self.assignment(i)

    def call(self, i, t):
        close = self.pairs[i + 1]
        if ALLOCATIONS.match(t.text):
            self.untouched = self.tokens[close].start
            return
        begins = self.begins_statement(i) and self.text(close + 1) == ";"
        if begins and not RELEASES.match(t.text) and not NEEDS.match("".join(self.text(k) for k in range(i, i + 4))):
            self.add("removed call", t.start, self.tokens[close].end, "(void)0")
        parts, j, start = [], i + 2, i + 2
        while j < close:
            if self.text(j) == ",":
                parts.append((start, j))
                start = j + 1
            j = self.pairs.get(j, j) + 1 if self.text(j) in ("(", "[", "{") else j + 1
        parts.append((start, close))
        equality = EQUALITIES.match(t.text) and (self.text(i - 1) == "!" or self.text(close + 1) in ("==", "!="))
        spans = [(self.tokens[a].start, self.tokens[b - 1].end) for a, b in parts if b > a]
        for (a, b), (c, d) in zip(spans, spans[1:]):
            if self.source[a:b] != self.source[c:d]:
                self.add("swapped arguments", a, d, self.source[c:d] + self.source[b:c] + self.source[a:b],
                         bool(equality or SYMMETRIC.match(t.text)) and a == spans[0][0])

    def assignment(self, i):
        """Removes `x->y = z;`; a declaration has a second name or a star before its '='."""
        j = i
        while self.text(j) not in ASSIGNMENTS:
            if self.text(j) in (";", "{", "}", "(", "") or (j > i and self.tokens[j].kind == "name" and
                                                            self.text(j - 1) not in (".", "->")):
                return
            if self.text(j) == "*":
                return
            j = self.pairs.get(j, j) + 1 if self.text(j) == "[" else j + 1
        while self.text(j) not in (";", ""):
            j = self.pairs.get(j, j) + 1 if self.text(j) in ("(", "[", "{") else j + 1
        self.add("removed assignment", self.tokens[i].start, self.tokens[j - 1].end, "(void)0")

    def is_extreme(self, i, t):
        """Whether the comparison chooses the smaller or larger of its two sides: either will do if they are equal."""
        j = i
        while j > 0 and self.text(j - 1) not in (",", ";", "}", "?", ":", "(", "[", "{", "=", "return", "&&", "||"):
            j = self.pairs.get(j - 1, j - 1)
        left = self.source[self.tokens[j].start:self.tokens[i - 1].end]
        end = self.operand_end(i + 1, LOOSER["<"])
        right, rest = self.source[self.tokens[i + 1].start:end], " ".join(self.source[end:end + 200].split())
        sides = [(left, right), (right, left)] + ([("-" + left, left), (left, "-" + left)] if right == "0" else [])
        return any(rest.startswith((f"? {a} : {b}", f") {a} = {b};")) for a, b in sides)

    def is_allocated(self, t):
        """Whether the term is one of several pointers that are all allocated: no test runs out of memory."""
        begin = self.source.rfind("\n", 0, t.start) + 1
        lines = self.source[begin:].split("\n", 2)
        condition = lines[0].split("?")[0]
        return (t.text in ("&&", "||") and "rp_err_nomem(" in lines[0] + lines[1] and
                not re.search(r"[<>=!]=|->?\w*n\b|\w\(|[<+*]", condition))

    def is_unreachable(self, t):
        """Whether the comparison refuses more than four billion of something: no test has so many."""
        begin = self.source.rfind("\n", 0, t.start) + 1
        lines = self.source[begin:].split("\n", 2)
        return bool(re.search(r"\b(RP_NONE|UINT32_MAX)\b", lines[0])) and "RP_LIMIT" in lines[1]

    def operator(self, i, t):
        if not t.code or not self.binary(t):
            return
        extreme = t.text in LOOSER["<"] and self.is_extreme(i, t)
        beyond = t.text in ("<", "<=", ">", ">=") and self.is_unreachable(t)
        for new in COMPARISONS.get(t.text, ()):
            edge = new[0] == t.text[0] and new[0] in "<>"  # only what is equal is decided otherwise
            if not extreme or not edge:
                self.add("flipped edge" if edge else "comparison", t.start, t.end, new, edge and beyond)
        if t.text in OPERATORS:
            self.add("operator", t.start, t.end, OPERATORS[t.text], self.is_allocated(t))
        if t.text in LOOSER:
            end = self.operand_end(i + 1, LOOSER[t.text])
            if t.text in ("<", "<=", ">", ">="):
                for step in () if extreme else (" + 1", " - 1"):
                    self.add("off by one", end, end, step, beyond)
            else:
                start = t.start - (1 if self.source[t.start - 1] == " " else 0)
                self.add("dropped term", start, end, "", self.is_allocated(t))


def changes_of(source):
    """Every change that may be made, by the number of the line (from 1) where it begins."""
    lines = {}
    for change in Finder(source).found:
        lines.setdefault(source.count("\n", 0, change.start) + 1, []).append(change)
    return lines


def apply(source, change):
    return source[:change.start] + change.new + source[change.end:]


def body_lines(source):
    """The lines in bodies of functions, as opposed to tables and macros."""
    tokens, lines = tokens_of(source), set()
    pairs = pairs_of(tokens)
    for i, t in enumerate(tokens):
        if t.text == "{" and i > 0 and not t.code and tokens[i - 1].text == ")" and i in pairs:
            first, last = (source.count("\n", 0, tokens[j].start) + 1 for j in (i, pairs[i]))
            lines.update(range(first, last + 1))
    return lines
