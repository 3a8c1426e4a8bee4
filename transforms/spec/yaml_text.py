"""YAML text into plain values, every scalar as the text that stands in the file.

Here belongs what YAML is taken to mean: ``off``, ``2024-01-01`` and ``007`` stay text, so that the
field they are written for decides; an empty value is None; a key may not stand twice. What a spec
allows is in the other ``spec_*`` modules.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from transforms.spec.words import Mistake, Path, Words

_MERGE: Final = "<<"
_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass
class Document:
    """The values of a YAML text, the line (from 1) of each path, and what is wrong with it."""

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def line_of(self, path: Path) -> int | None:
        """Return the line of a path, or of the nearest one above it."""
        steps = (path[:length] for length in range(len(path), -1, -1))
        return next((self.lines[step] for step in steps if step in self.lines), None)


def read_yaml(text: str) -> Document:
    """Read one YAML document; mistakes of syntax and doubled keys are in ``mistakes``."""
    document = Document()
    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        _add_syntax_mistake(document, error)
        return document
    if node is not None:
        document.value = _value(document, node, (), frozenset())
    return document


def _add_syntax_mistake(document: Document, error: Exception) -> None:
    mark = getattr(error, "problem_mark", None)
    words = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    if mark is not None:
        document.lines[()] = mark.line + 1
        words = f"{words}, at column {mark.column + 1}"
    document.mistakes.append(Mistake((), Words(f"broken YAML ({words})"), "valid YAML"))


def _value(document: Document, node: yaml.Node, path: Path, above: frozenset[int]) -> Any:
    document.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.ScalarNode):
        plain = node.style is None
        return None if plain and node.value in _NOTHING else node.value
    if id(node) in above:
        document.mistakes.append(Mistake(path, Words("an alias"), "no alias of what it stands in"))
        return None
    return _collection(document, node, path, above | {id(node)})


def _collection(document: Document, node: yaml.Node, path: Path, above: frozenset[int]) -> Any:
    if isinstance(node, yaml.SequenceNode):
        items = enumerate(node.value)
        return [_value(document, item, (*path, place), above) for place, item in items]
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key(document, key_node, path)
        if key in mapping:
            document.lines[*path, key] = key_node.start_mark.line + 1
            document.mistakes.append(
                Mistake((*path, key), Words("the same key twice"), "each key once")
            )
            continue
        document.lines[*path, key] = key_node.start_mark.line + 1
        mapping[key] = _value(document, value_node, (*path, key), above)
    return mapping


def _key(document: Document, node: yaml.Node, path: Path) -> str:
    if isinstance(node, yaml.ScalarNode):
        if node.value == _MERGE and node.style is None:
            words = Words("a merge key (<<)")
            document.mistakes.append(Mistake(path, words, "every field written out"))
        return str(node.value)
    document.lines.setdefault(path, node.start_mark.line + 1)
    document.mistakes.append(Mistake(path, Words("a collection as a key"), "a text as a key"))
    return ""
