"""``lowwater grace``: which grace to choose, from the arrivals that are stored, or from files.

Here belongs how the sweep and its advice are told. What is computed is in ``orchestration.grace``.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orchestration.commands.result import AsJson, show
from orchestration.settings import Settings
from orchestration.specs import load_specs
from transforms.errors import UsageError

if TYPE_CHECKING:
    from assets.arrivals import Arrivals
    from transforms.grace.advice import Advice
    from transforms.grace.report import Report
    from transforms.lateness.hints import Hint
    from transforms.spec import StreamSpec

SPEC_ENDINGS: Final = (".yaml", ".yml")
SHOWN_KEYS: Final = 30


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
    since: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="P", help="Look at all arrivals from this partition, or time, on."
        ),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Sweep grace over the arrivals: dead letters against delay, the knee, what to choose.

    Every candidate is judged as reordering these arrivals from the first would judge it, with room
    for all rows; nothing is changed. Of a stream in the lake the newest partitions are looked at,
    five million rows of them, unless --from says where to begin.
    """
    # Polars and Dagster take their time to import; a wrong name need not wait for them.
    from orchestration import grace  # noqa: PLC0415
    from transforms.grace.report import report  # noqa: PLC0415
    from transforms.lateness.hints import hints  # noqa: PLC0415
    from transforms.lateness.profile import lateness_profile  # noqa: PLC0415

    spec = spec_of(stream, inputs or [])
    graces = grace.parse_graces(spec, tried or [])
    if inputs and since is not None:
        raise UsageError("--from goes with a stream in the lake; of files all rows are looked at")
    if inputs:
        log, until_us, where = grace.log_of_files(spec, inputs), None, {}
    else:
        stored = grace.arrivals_of_lake(Settings.from_environment(), spec, since)
        log, until_us, where = stored.log, stored.until_us, partitions(stored)
    found = report(spec, log, until_us=until_us, tried=graces, allowed=allowed / 100)
    odd = hints(lateness_profile(log, tuple(spec.profiles.named)))
    result = {**found.as_record(), **where, "keys_to_look_at": [hint._asdict() for hint in odd]}
    show(result, [*lines(found, where), *odd_keys(odd)], as_json=as_json)


def partitions(stored: "Arrivals") -> dict[str, Any]:
    """Return which arrival partitions were looked at."""
    return {
        "first_partition": stored.partitions[0],
        "last_partition": stored.partitions[-1],
        "partitions_left_out": stored.left_out,
    }


def spec_of(stream: str, inputs: Sequence[str]) -> "StreamSpec":
    """Return the spec of a stream of this installation, or that of a file that comes with input."""
    if not stream.endswith(SPEC_ENDINGS):
        if inputs:
            raise UsageError("--input goes with SPEC.yaml; a stream by name is read from the lake")
        return load_specs(Settings.from_environment().streams).computed(stream)
    if not inputs:
        raise UsageError(f"{stream}: say which files to read: --input FILE")
    from transforms.spec import load_spec  # noqa: PLC0415

    try:
        text = Path(stream).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{stream}: the spec cannot be read: {error}") from error
    return load_spec(text, file=stream)


def lines(report: "Report", where: Mapping[str, Any]) -> Iterator[str]:
    """Tell it to people."""
    yield f"{report.spec.name}: {report.rows:,} rows{of_partitions(where)}"
    for advice in report.advices:
        yield ""
        yield from profile_lines(advice)
    for profile in report.unused:
        yield f"profile {profile}: no row uses it"


def of_partitions(where: Mapping[str, Any]) -> str:
    """Say which partitions were looked at; nothing of files."""
    if not where:
        return ""
    told = f", arrived in {where['first_partition']} to {where['last_partition']}"
    left_out = where["partitions_left_out"]
    return (
        f"{told}; {left_out:,} partitions before that are left out (--from)" if left_out else told
    )


def odd_keys(odd: Sequence["Hint"]) -> Iterator[str]:
    """Tell which keys to look at; of many, how many more there are."""
    yield from (hint.words for hint in odd[:SHOWN_KEYS])
    if len(odd) > SHOWN_KEYS:
        yield f"and {len(odd) - SHOWN_KEYS:,} more such keys: --json has all"


def profile_lines(advice: "Advice") -> Iterator[str]:
    """Tell one profile: the curve, the advice, the warnings."""
    from transforms.grace.report import HEADER, cells, shown  # noqa: PLC0415

    yield (
        f"profile {advice.profile}: {advice.in_force['rows']:,} rows of {advice.keys:,} keys"
        f" over {span(advice.days)}; delay of windows {advice.window}"
    )
    yield from aligned([HEADER, *(cells(advice, point) for point in shown(advice))])
    yield from (f"  {words}" for words in advice.words)
    yield from (f"  warning: {words}" for words in advice.warnings)


def span(days: float) -> str:
    """Return how long the arrivals took; figures a day are of one hour at least."""
    from transforms.durations import DAY_US, HOUR_US  # noqa: PLC0415
    from transforms.grace.advice import plain  # noqa: PLC0415

    if days >= 1:
        return f"{days:.3g} days"
    took_us = round(days * DAY_US)
    return plain(took_us) if took_us > HOUR_US else "an hour at most"


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Line columns up to the right, the last one to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *numbers, name in rows:
        padded = (cell.rjust(width) for cell, width in zip(numbers, widths, strict=False))
        yield "  " + "  ".join([*padded, name]).rstrip()
