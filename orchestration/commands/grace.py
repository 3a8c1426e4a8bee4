"""``lowwater grace``: which grace to choose, from the arrivals that are stored, or from files.

Here belongs how the sweep and its advice are told. What is computed is in ``orchestration.grace``.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orchestration.commands.result import AsJson, show
from orchestration.settings import Settings
from orchestration.specs import load_specs
from transforms.errors import UsageError

if TYPE_CHECKING:
    from orchestration.grace import Report
    from transforms.grace_advice import Advice
    from transforms.spec import StreamSpec

SPEC_ENDINGS: Final = (".yaml", ".yml")
LINES: Final = 16
HEADER: Final = (
    *("grace", "behind", "dead letters", "amended", "first late"),
    *("delay p50", "p95", "peak rows", ""),
)


def command(
    stream: Annotated[
        str, typer.Argument(metavar="STREAM|SPEC.yaml", help="A stream, or a spec with --input.")
    ],
    tried: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PROFILE=GRACE", help="Compare this grace; repeatable."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="FILE", help="With SPEC.yaml: the arrival log to read."),
    ] = None,
    allowed: Annotated[
        float,
        typer.Option(
            "--allow", min=0, max=100, metavar="PERCENT", help="Rows left behind, at most."
        ),
    ] = 1.0,
    *,
    as_json: AsJson = False,
) -> None:
    """Sweep grace over the arrivals: dead letters against delay, the knee, what to choose.

    Every candidate is judged as reordering all arrivals from the start would judge it, with room
    for all rows; nothing is changed.
    """
    from orchestration import grace  # noqa: PLC0415 - Polars and Dagster take their time

    spec = spec_of(stream, inputs or [])
    graces = grace.parse_graces(spec, tried or [])
    if inputs:
        log, until_us = grace.log_of_files(spec, inputs), None
    else:
        log, until_us = grace.log_of_lake(Settings.from_environment(), spec)
    found = grace.report(spec, log, until_us=until_us, tried=graces, allowed=allowed / 100)
    show(found.as_record(), lines(found), as_json=as_json)


def spec_of(stream: str, inputs: Sequence[str]) -> "StreamSpec":
    """Return the spec of a stream of this installation, or that of a file that comes with input."""
    if not stream.endswith(SPEC_ENDINGS):
        if inputs:
            raise UsageError("--input goes with SPEC.yaml; a stream by name is read from the lake")
        return load_specs(Settings.from_environment().streams).stream(stream)
    if not inputs:
        raise UsageError(f"{stream}: say which files to read: --input FILE")
    from transforms.spec import load_spec  # noqa: PLC0415

    try:
        text = Path(stream).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{stream}: the spec cannot be read: {error}") from error
    return load_spec(text, file=stream)


def lines(report: "Report") -> Iterator[str]:
    """Tell it to people."""
    yield f"{report.spec.name}: {report.rows:,} rows"
    for advice in report.advices:
        yield ""
        yield from profile_lines(advice)
    for profile in report.unused:
        yield f"profile {profile}: no row uses it"
    for alike in report.look_alikes.to_dicts():
        yield (
            f"key {alike['key']} looks like a key of profile {alike['looks_like']}:"
            " its delays are unlike those of its own"
        )


def profile_lines(advice: "Advice") -> Iterator[str]:
    """Tell one profile: the curve, the advice, the warnings."""
    yield (
        f"profile {advice.profile}: {advice.in_force['rows']:,} rows of {advice.keys:,} keys"
        f" over {advice.days:.3g} days; delay of windows {advice.window}"
    )
    yield from aligned([HEADER, *(cells(advice, point) for point in shown(advice))])
    yield from (f"  {words}" for words in advice.words)
    yield from (f"  warning: {words}" for words in advice.warnings)


def shown(advice: "Advice") -> Sequence[dict[str, Any]]:
    """Return the points worth a line: those with a name, and some between; a what-if with them."""
    named = {advice.in_force["grace_us"], advice.advised["grace_us"], advice.knee_us}
    points = advice.curve.to_dicts()
    every = max(1, -(-len(points) // LINES))
    kept = [p for i, p in enumerate(points) if i % every == 0 or p["grace_us"] in named]
    known = {point["grace_us"] for point in kept}
    if advice.tried is not None and advice.tried["grace_us"] not in known:
        kept.append(advice.tried)
    return sorted(kept, key=lambda point: int(point["grace_us"]))


def cells(advice: "Advice", point: dict[str, Any]) -> tuple[str, ...]:
    """Give one line of the table."""
    from transforms.grace_advice import percent, plain  # noqa: PLC0415

    delays = (point["delay_median_us"], point["delay_p95_us"])
    return (
        plain(point["grace_us"]),
        percent(point["behind_fraction"]),
        f"{point['dead_letters']:,}",
        f"{point['windows_amended']:,}",
        f"{point['windows_first_by_late_rows']:,}",
        *("-" if delay is None else plain(delay) for delay in delays),
        f"{point['peak_rows']:,}",
        names_of(advice, point["grace_us"]),
    )


def names_of(advice: "Advice", grace_us: int) -> str:
    """Return what a grace is: the one in force, the knee, the advised one, the tried one."""
    tried = None if advice.tried is None else advice.tried["grace_us"]
    names = {
        "in force": advice.in_force["grace_us"],
        "knee": advice.knee_us,
        "advised": advice.advised["grace_us"],
        "tried": tried,
    }
    return ", ".join(name for name, grace in names.items() if grace == grace_us)


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Line columns up to the right, the last one to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *numbers, name in rows:
        padded = (cell.rjust(width) for cell, width in zip(numbers, widths, strict=False))
        yield "  " + "  ".join([*padded, name]).rstrip()
