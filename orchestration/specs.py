"""The stream specs of an installation: found in one folder, read one by one.

Here belongs which files are specs, and that a broken one bars no other stream. How a spec is read
is in ``transforms.spec``.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from transforms.errors import SpecError, SpecProblem, UsageError
from transforms.spec import StreamSpec, load_spec


@dataclass(frozen=True)
class Specs:
    """What the folder holds: specs by stream, and what is wrong with the other files."""

    good: dict[str, StreamSpec]
    broken: dict[Path, SpecError]

    def stream(self, name: str) -> StreamSpec:
        """Return the spec of a stream. Raises SpecError if it is broken, else UsageError."""
        if name in self.good:
            return self.good[name]
        for path, error in self.broken.items():
            if path.stem == name:
                raise error
        for spec in self.good.values():
            if name in names_of(spec):
                raise UsageError(f"{name} is a track of {spec.name}; name that: {spec.name}")
        known = ", ".join(self.good) or "none"
        unread = f"; not readable: {', '.join(map(str, self.broken))}" if self.broken else ""
        raise UsageError(f"there is no stream {name}; known: {known}{unread}")

    def computed(self, name: str) -> StreamSpec:
        """Return the spec by which rows become windows: of a stream, or of a track (STREAM_TRACK).

        Raises SpecError and UsageError as ``stream``, the latter for a stream with tracks too.
        """
        tracks = {part.name: part for spec in self.good.values() for part in spec.computed}
        if name in tracks:
            return tracks[name]
        names = [part.name for part in self.stream(name).computed]
        raise UsageError(f"{name} has tracks; name one of them: {', '.join(names)}")


def load_specs(folder: Path) -> Specs:
    """Read every spec of a folder, in order of their names."""
    specs = Specs({}, {})
    taken: set[str] = set()
    for path in spec_files(folder):
        try:
            spec = _read(path, taken)
        except SpecError as error:
            specs.broken[path] = error
        else:
            specs.good[spec.name] = spec
            taken |= names_of(spec)
    return specs


def spec_files(folder: Path) -> Iterable[Path]:
    """Return the specs of a folder, in order of their names."""
    return sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])


def names_of(spec: StreamSpec) -> set[str]:
    """Return the names a stream takes: folders of the lake, prefixes of assets and of schemas."""
    return {spec.name, *(part.name for part in spec.computed)}


def _read(path: Path, taken: AbstractSet[str]) -> StreamSpec:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = SpecProblem(str(path), "", str(error), "a text file in UTF-8")
        raise SpecError((problem,)) from error
    spec = load_spec(text, file=str(path))
    problems = [
        SpecProblem(
            str(path),
            "name" if name == spec.name else "tracks",
            repr(name),
            "a name no other stream or track has",
        )
        for name in sorted(names_of(spec) & taken)
    ]
    if problems:
        raise SpecError(tuple(problems))
    return spec
