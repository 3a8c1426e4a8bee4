"""The stream specs of an installation: found in one folder, read one by one.

Here belongs which files are specs, and that a broken one bars no other stream. How a spec is read
is in ``transforms.spec``.
"""

from collections.abc import Container, Iterable
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
        known = ", ".join(self.good) or "none"
        unread = f"; not readable: {', '.join(map(str, self.broken))}" if self.broken else ""
        raise UsageError(f"there is no stream {name}; known: {known}{unread}")


def load_specs(folder: Path) -> Specs:
    """Read every spec of a folder, in order of their names."""
    specs = Specs({}, {})
    for path in spec_files(folder):
        try:
            spec = _read(path, specs.good)
        except SpecError as error:
            specs.broken[path] = error
        else:
            specs.good[spec.name] = spec
    return specs


def spec_files(folder: Path) -> Iterable[Path]:
    """Return the specs of a folder, in order of their names."""
    return sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])


def _read(path: Path, others: Container[str]) -> StreamSpec:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = SpecProblem(str(path), "", str(error), "a text file in UTF-8")
        raise SpecError((problem,)) from error
    spec = load_spec(text, file=str(path))
    if spec.name in others:
        problem = SpecProblem(str(path), "name", repr(spec.name), "a name no other stream has")
        raise SpecError((problem,))
    return spec
