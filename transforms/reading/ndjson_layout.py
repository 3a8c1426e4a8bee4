"""The layout of an NDJSON line: what lines written by the same program have in common.

A line that is valid JSON is cut into literal runs, strings and scalars: `{"k": "` is a run, the
text of the value a hole, `", "level": ` a run, `9.88` a gap, `}` a run. Any line that has the
same runs in the same places, any plain text in the holes and valid scalars in the gaps is valid
JSON of the same shape: a *twin*. Finding twins is `ndjson_twins`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transforms.reading.byte_slices import LONGEST_LITERAL
from transforms.reading.ndjson_lines import read_line

SCALAR = r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|Infinity)|NaN|true|false|null"
"""A JSON value without quotes or brackets, with the bare words that are read as written."""

_ONE_SCALAR = f"(?:{SCALAR})"
_TOKEN = re.compile(rf'(?P<string>"[^"]*")|(?P<scalar>{SCALAR})|(?P<sign>[{{}}\[\],:])|\s+')
_SPECIAL = re.compile(r"([^\w\s])")


class Hole(NamedTuple):
    """A string; the run before it ends with its first quote, the next begins with its last."""

    column: str | None


class Gap(NamedTuple):
    """One scalar, or several that no quote parts; `pattern` is what may stand there."""

    pattern: str
    column: str | None

    @property
    def is_single(self) -> bool:
        """Whether it is one scalar."""
        return self.pattern == _ONE_SCALAR


Piece = Hole | Gap


class Layout(NamedTuple):
    """Runs and, between each two of them, a hole or a gap; `absent` columns are in no piece."""

    runs: tuple[bytes, ...]
    pieces: tuple[Piece, ...]
    quotes: int


class _Token(NamedTuple):
    """A piece of a line; `column` is set for the value of a name at the top level."""

    kind: str
    text: str
    column: str | None = None
    is_name: bool = False


def layout_of(line: str, columns: Sequence[str]) -> Layout | None:
    """The layout of a line; None if it is no row, or says something in a way that has no layout.

    That is an escape, a list or object as the value of one of the columns, or a very long run.
    """
    if "\\" in line or isinstance(read_line(line, columns), str):
        return None
    tokens = list(_top_level(_tokens(line)))
    if any(token.kind == "sign" and token.column in columns for token in tokens):
        return None
    layout = _assemble(tokens, columns)
    return layout if max(map(len, layout.runs)) <= LONGEST_LITERAL else None


def _tokens(line: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(line):
        yield _Token(found.lastgroup or "blank", found[0])


def _top_level(tokens: Iterator[_Token]) -> Iterator[_Token]:
    """Mark names, and the first token of each value of the outermost object."""
    nesting: list[str] = []
    expects_name = False
    name: str | None = None
    for token in tokens:
        if token.kind == "blank":
            yield token
        elif token.kind == "string" and expects_name:
            expects_name = False
            name = token.text[1:-1] if len(nesting) == 1 else None
            yield token._replace(is_name=True)
        elif token.text in {"}", "]"}:
            nesting.pop()
            yield token
        elif token.text in {",", ":"}:
            expects_name = token.text == "," and nesting[-1] == "{"
            yield token
        else:
            yield token._replace(column=name)
            name = None
            if token.kind == "sign":
                nesting.append(token.text)
                expects_name = token.text == "{"


def _assemble(tokens: Sequence[_Token], columns: Sequence[str]) -> Layout:
    """Join what is literal into runs, and scalars that no string parts into one gap."""
    last = {token.column: at for at, token in enumerate(tokens) if token.column in columns}
    runs: list[str] = []
    pieces: list[Piece] = []
    run = ""
    for at, token in enumerate(tokens):
        column = token.column if last.get(token.column) == at else None
        if token.kind == "string" and not token.is_name:
            runs.append(run + '"')
            pieces.append(Hole(column))
            run = '"'
        elif token.kind != "scalar":
            run += token.text
        elif pieces and isinstance(pieces[-1], Gap) and '"' not in run:
            between = _SPECIAL.sub(r"\\\1", run)
            pieces[-1] = Gap(f"{pieces[-1].pattern}{between}{_ONE_SCALAR}", None)
            run = ""
        else:
            runs.append(run)
            pieces.append(Gap(_ONE_SCALAR, column))
            run = ""
    texts = (*runs, run)
    names = sum(text.count('"') for text in texts)
    return Layout(tuple(text.encode() for text in texts), tuple(pieces), names)
