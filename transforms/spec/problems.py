"""From the mistakes of a validation to problems a person can act on.

Here belongs the telling: path, what was found, what is allowed, the nearest known name. What is a
mistake is decided in the other ``spec_*`` modules.
"""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from transforms.errors import SpecProblem
from transforms.spec.fields import MISTAKE
from transforms.spec.partitions import Arrival, Events
from transforms.spec.profiles import LINKS, Profile
from transforms.spec.source import Columns, Source, TimeColumn
from transforms.spec.windows import window_fields
from transforms.spec.words import (
    Mistake,
    Path,
    Words,
    allowed_at,
    found_words,
    nearest,
    path_words,
)
from transforms.spec.written import value_at
from transforms.spec.yaml_text import Document

_PROFILE_FIELDS: Final = ("by", "key_map", "default")


Names = tuple[str, ...]


def fields_of(model: type[BaseModel]) -> Names:
    """Return the fields of a model as they are called in the file."""
    fields = model.model_fields.items()
    return tuple(str(info.validation_alias or name) for name, info in fields)


_FIELDS: Final[dict[str, Names]] = {
    "source": fields_of(Source),
    "columns": fields_of(Columns),
    "event_time": fields_of(TimeColumn),
    "arrival_time": fields_of(TimeColumn),
    "arrival": fields_of(Arrival),
    "events": fields_of(Events),
    "profiles": fields_of(Profile),
    "windows": window_fields(),
    "alerts": ("dead_letter_fraction", "stale_after"),
}


def mistakes_of(error: ValidationError, written: Any, top_level: Names) -> Iterator[Mistake]:
    """Yield the mistakes of a validation, with paths and values as in the file."""
    for details in error.errors(include_url=False):
        if details["type"] == "too_short" and details["input"]:
            # Not empty: its entries are wrong, and each of them is reported.
            continue
        path: Path = tuple(part for part in details["loc"] if part != "[key]")
        yield _mistake(details, path, written, top_level)


def _mistake(details: ErrorDetails, path: Path, written: Any, top_level: Names) -> Mistake:
    if details["type"] == MISTAKE:
        words = details["ctx"]
        return Mistake(path, details["input"], words["allowed"], words["hint"])
    if details["type"] == "extra_forbidden":
        known = _fields_beside(path) or top_level
        hint = nearest(str(path[-1]), known)
        return Mistake(path, Words("an unknown field"), ", ".join(known), hint)
    if details["type"] == "missing":
        return Mistake(path, None, allowed_at(path))
    found = value_at(written, path, details["input"])
    return Mistake(path, found, allowed_at(path), _profile_hint(path))


def _fields_beside(path: Path) -> Names:
    """The fields of the section that a path leads into; none at the top level."""
    names = [part for part in path[:-1] if isinstance(part, str)]
    section = "profiles" if names[:1] in (["profiles"], ["tracks"]) else "".join(names[-1:])
    return _FIELDS.get(section, ())


def _profile_hint(path: Path) -> str:
    """``bye: link`` under profiles reads as a profile that is no mapping."""
    if path[:1] == ("tracks",) and path[-1] in LINKS:
        return f"{path[-1]} stands under profiles, for all tracks"
    if len(path) != 2 or path[0] != "profiles":  # noqa: PLR2004 - profiles.<name>
        return ""
    return nearest(str(path[1]), _PROFILE_FIELDS)


def problems_of(file: str, document: Document, mistakes: list[Mistake]) -> tuple[SpecProblem, ...]:
    """Return the problems of a file in the order of its lines, each once."""
    lines = {mistake.path: document.line_of(mistake.path) or 0 for mistake in mistakes}
    ordered = sorted(mistakes, key=lambda mistake: lines[mistake.path])
    problems = (_problem(file, lines[mistake.path], mistake) for mistake in ordered)
    return tuple(dict.fromkeys(problems))


def _problem(file: str, line: int, mistake: Mistake) -> SpecProblem:
    found = found_words(mistake.found)
    path = path_words(mistake.path)
    return SpecProblem(file, path, found, mistake.allowed, mistake.hint, line or None)
