"""``lowwater check``: are the specs right, can sources and targets be reached; nothing is changed.

Here belongs what is looked at and how it is told. A spec with mistakes makes the exit code 2, a
source or target out of reach or not as declared 3; a warning leaves it 0.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from assets.stores.targets.target import DEFAULT_TARGET
from orchestration.commands.result import AsJson, show
from orchestration.settings import Settings
from orchestration.specs import Specs, load_specs
from transforms.errors import LowwaterError, UsageError
from transforms.spec import StreamSpec

if TYPE_CHECKING:
    from assets.stores.sources.files import FileRead

SPEC: Final = "spec"
SOURCE: Final = "source"
TARGET: Final = "target"
OK: Final = "ok"
WARNING: Final = "warning"
PROBLEM: Final = "problem"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; ``exit_code`` is 0 unless it is a problem."""

    stream: str
    about: str
    level: str
    message: str
    exit_code: int = 0

    @classmethod
    def of(cls, stream: str, about: str, error: LowwaterError) -> "Finding":
        """Tell an error as a finding."""
        return cls(stream, about, PROBLEM, str(error), error.exit_code)


def command(
    stream: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="One stream; all of them if left out.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> int:
    """Check specs, sources and targets.

    Nothing is changed. Exit code 2: a spec has mistakes; 3: a source or target is out of reach.
    """
    settings = Settings.from_environment()
    findings = list(look_at(settings, load_specs(settings.streams), stream))
    code = max((finding.exit_code for finding in findings), default=0)
    result = {"ok": code == 0, "findings": [asdict(finding) for finding in findings]}
    show(result, lines(findings), as_json=as_json)
    return code


def look_at(settings: Settings, specs: Specs, stream: str | None) -> Iterator[Finding]:
    """Look at one stream, or at all and at the specs that cannot be read."""
    if stream is not None:
        chosen = [specs.stream(stream)]
    elif specs.good or specs.broken:
        chosen = list(specs.good.values())
        for path, error in specs.broken.items():
            yield Finding.of(path.stem, SPEC, error)
    else:
        raise UsageError(f"{settings.streams} holds no spec; add one, or set LOWWATER_STREAMS")
    for spec in chosen:
        yield from of_spec(spec)
        yield from of_source(spec, settings)
        yield of_target(spec, settings)


def of_spec(spec: StreamSpec) -> Iterator[Finding]:
    """Say that a spec is right, and warn of what is allowed but seldom meant."""
    yield Finding(spec.name, SPEC, OK, f"fingerprint {spec.fingerprint()[:12]}")
    time_alone = spec.identity_has_event_time and not spec.identity_columns
    if spec.resolution_us is not None and time_alone:
        yield Finding(
            spec.name,
            SPEC,
            WARNING,
            "resolution: two readings of one step have one identity, so the second is a duplicate"
            " or a conflict; declare columns.event_id if a device may send several",
        )


def of_source(spec: StreamSpec, settings: Settings) -> Iterator[Finding]:
    """Find the files and read the one whose name comes last."""
    from assets.stores.sources.files import find_files, read_file  # noqa: PLC0415

    try:
        names = find_files(spec, settings.home)
        if not names:
            where = f"{spec.source.path} (below {settings.home})"
            yield Finding(spec.name, SOURCE, PROBLEM, f"no file matches {where}", exit_code=3)
            return
        read = read_file(spec, names[-1], data_dir=settings.home)
    except LowwaterError as error:
        yield Finding.of(spec.name, SOURCE, error)
        return
    yield Finding(
        spec.name, SOURCE, OK, f"{len(names):,} files; the last one, {names[-1]}, is read"
    )
    yield from of_rejected(spec, read)


def of_rejected(spec: StreamSpec, read: "FileRead") -> Iterator[Finding]:
    """Warn of rows that cannot be read; a file of which no row can is a problem."""
    if read.rejected.is_empty():
        return
    share = f"{read.rejected.height:,} of {read.parsed.height:,} rows of {read.name} are rejected"
    first = read.rejected.row(0, named=True)
    example = f"line {first['line']}: {first['reason']}, {first['detail']}"
    level, code = (WARNING, 0) if read.staged.height else (PROBLEM, 3)
    yield Finding(spec.name, SOURCE, level, f"{share}, the first in {example}", code)


def of_target(spec: StreamSpec, settings: Settings) -> Finding:
    """Open the target if it is there; nobody is waited for."""
    from orchestration.targets import target_of  # noqa: PLC0415

    try:
        target = target_of(settings, spec, patience_s=0)
        if spec.target == DEFAULT_TARGET and not settings.target.exists():
            return Finding(spec.name, TARGET, OK, f"{settings.target} will be made")
        with target:
            return Finding(spec.name, TARGET, OK, f"{target.label} can be opened")
    except LowwaterError as error:
        return Finding.of(spec.name, TARGET, error)


def lines(findings: list[Finding]) -> Iterator[str]:
    """Say for people what was found, a line for each."""
    width = max((len(finding.stream) for finding in findings), default=0)
    for finding in findings:
        for line in finding.message.splitlines():
            yield f"{finding.stream:<{width}}  {finding.about:<6}  {finding.level:<7}  {line}"
