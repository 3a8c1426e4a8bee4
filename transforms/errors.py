"""What can go wrong, as types, each with the exit code of the command line that it stands for.

Here belong errors that a user can act on: the message says what to do, in one line. A mistake of
ours stays an ordinary Python exception. How an error is shown is the business of ``orchestration``.
"""

from dataclasses import dataclass
from typing import ClassVar


def one_line(text: str) -> str:
    """Return a text as one line that a terminal shows as it is: control characters as escapes."""
    if text.isprintable():
        return text
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return "".join(escaped)


class LowwaterError(Exception):
    """Base of all; the message is one line that says what to do."""

    exit_code: ClassVar[int] = 4
    # Whether the same thing may go well a little later, with nothing done about it.
    may_pass: ClassVar[bool] = False


class CheckError(LowwaterError):
    """It ran, and a check failed; the message names it."""

    exit_code = 1


class UsageError(LowwaterError):
    """The command was called in a way that cannot work."""

    exit_code = 2


@dataclass(frozen=True)
class SpecProblem:
    """One mistake in a stream spec: where it is, what stands there, what may stand there.

    ``path`` is the place inside the file, such as ``profiles.satellite.grace``. ``hint`` may be
    empty, ``line`` (from 1) unknown.
    """

    file: str
    path: str
    found: str
    allowed: str
    hint: str = ""
    line: int | None = None

    def __str__(self) -> str:
        """All of it in one line."""
        file = self.file if self.line is None else f"{self.file}:{self.line}"
        where = f"{file}: {self.path}" if self.path else file
        line = f"{where}: found {self.found}; allowed: {self.allowed}"
        return one_line(f"{line} ({self.hint})" if self.hint else line)


class SpecError(LowwaterError):
    """A stream spec with mistakes: all of them, a line for each."""

    exit_code = 2

    def __init__(self, problems: tuple[SpecProblem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class SourceError(LowwaterError):
    """A source could not be reached, or not be read as declared."""

    exit_code = 3


class TargetError(LowwaterError):
    """A target could not be reached, or does not take what is published."""

    exit_code = 3


class LakeError(LowwaterError):
    """The lake is out of reach, in use by another writer, or holds another spec's state."""

    exit_code = 3


class CalculationError(LowwaterError):
    """A result without an exact value (a sum beyond int64); the message names the window."""

    exit_code = 4
