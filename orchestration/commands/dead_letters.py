"""``lowwater dead-letters``: what became of the rows that could not join the ordered stream.

Here belongs how it is told. What the outcomes are is said in ``transforms.reconciling.outcomes``.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestration.commands.result import AsJson, show
from orchestration.settings import Settings
from orchestration.specs import load_specs

if TYPE_CHECKING:
    import polars as pl


def command(
    stream: Annotated[str, typer.Argument(metavar="STREAM")],
    rows: Annotated[
        int, typer.Option("--rows", min=0, metavar="N", help="Show the N newest rows that wait.")
    ] = 10,
    *,
    as_json: AsJson = False,
) -> None:
    """Say of the dead letters of a stream which are counted, amended, or waiting, and why."""
    settings = Settings.from_environment()
    result = told(stream, dead_letters_of(settings, stream), rows)
    show(result, lines(result), as_json=as_json)


def dead_letters_of(settings: Settings, stream: str) -> "pl.DataFrame":
    """Return the dead letters of a stream, with ``outcome`` and ``why``; the newest last."""
    # What reads the lake brings Dagster with it.
    import polars as pl  # noqa: PLC0415

    from assets.history import History  # noqa: PLC0415
    from assets.outcomes import dead_letter_outcomes  # noqa: PLC0415
    from assets.partitions import Axis  # noqa: PLC0415
    from assets.stores.lake import Lake  # noqa: PLC0415
    from assets.stores.tables import EVENT_TABLES  # noqa: PLC0415
    from transforms.reconciling.outcomes import OUTCOME, WHY  # noqa: PLC0415
    from transforms.schemas import dead_letter_schema  # noqa: PLC0415

    spec = load_specs(settings.streams).computed(stream)
    history = History(Lake(settings.lake, event_tables=EVENT_TABLES), spec, Axis.of_events(spec))
    schema = {**dead_letter_schema(spec), OUTCOME: pl.String(), WHY: pl.String()}
    found = [pl.DataFrame(schema=schema), *dead_letter_outcomes(history)]
    return pl.concat(found).sort("arrival_us", "seq")


def told(stream: str, dead_letters: "pl.DataFrame", rows: int) -> dict[str, Any]:
    """Return the counts by outcome and reason, and the newest rows that wait."""
    groups = ["outcome", "reason", "why"]
    counts = dead_letters.group_by(groups).len("rows").sort(groups)
    waiting = dead_letters.filter(outcome="waiting")
    columns = ("seq", "key", "event_us", "arrival_us", "reason", "why")
    return {
        "stream": stream,
        "dead_letters": dead_letters.height,
        "waiting": waiting.height,
        "outcomes": counts.to_dicts(),
        "newest_waiting": waiting.select(columns).tail(rows).reverse().to_dicts(),
    }


def lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Say it for people."""
    total, waiting = result["dead_letters"], result["waiting"]
    yield f"{result['stream']}: {total:,} dead letters, {waiting:,} waiting"
    for group in result["outcomes"]:
        yield f"  {group['outcome']:<8}{group['rows']:>10,}  {group['reason']}: {group['why']}"
    if result["newest_waiting"]:
        yield "newest that wait:"
    for row in result["newest_waiting"]:
        yield f"  seq {row['seq']}, key {row['key']}, {instant(row['event_us'])}: {row['reason']}"


def instant(us: int) -> str:
    """Return an event time as text; a wrong clock may be beyond the years of the calendar."""
    from transforms.spec.fields import format_instant  # noqa: PLC0415

    try:
        return format_instant(us)
    except OverflowError:
        return f"{us} us"
