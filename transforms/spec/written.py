"""Looking at a spec as it is written: plain values, of which any may be missing or of a wrong kind.

Here belong the few ways to look that rules need. Rules work on what is written, not on validated
sections, so that a mistake in one place hides none in another.
"""

from collections import Counter
from typing import Any

from transforms.spec.words import Path

Named = tuple[Path, str]


def mapping(parent: Any, *names: str) -> dict[str, Any]:
    """Return the mapping at a path of names; an empty one where something else stands."""
    value = parent
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def text(parent: Any, *names: str) -> str | None:
    """Return the text at a path of names, None where something else stands."""
    value = mapping(parent, *names[:-1]).get(names[-1]) if isinstance(parent, dict) else None
    return value if isinstance(value, str) else None


def texts(parent: Any, *names: str) -> list[Named]:
    """Return the texts of the list at a path of names, each with its whole path.

    A single text counts as a list of it; what is no text is left out.
    """
    value = mapping(parent, *names[:-1]).get(names[-1])
    if isinstance(value, str):
        return [(names, value)]
    items = enumerate(value if isinstance(value, list) else ())
    return [((*names, place), item) for place, item in items if isinstance(item, str)]


def value_at(parent: Any, path: Path, otherwise: Any) -> Any:
    """Return what stands at a path, or ``otherwise`` where there is no such path."""
    value = parent
    for part in path:
        in_list = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if not in_list and not (isinstance(value, dict) and part in value):
            return otherwise
        value = value[part]
    return value


def repeated(named: list[Named]) -> list[Named]:
    """Return those whose name stood before, whatever the case of its letters."""
    seen: Counter[str] = Counter()
    again = []
    for path, name in named:
        seen[name.lower()] += 1
        if seen[name.lower()] > 1:
            again.append((path, name))
    return again
