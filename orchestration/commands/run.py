"""``lowwater run``: a stream through the whole platform, in one process."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestration.commands.progress import progress_bar
from orchestration.commands.result import AsJson, show
from orchestration.settings import Settings
from orchestration.specs import load_specs

if TYPE_CHECKING:
    from orchestration.run import Outcome

CHECK_FAILED = 1


def command(
    stream: Annotated[str, typer.Argument(help="The stream, by its name.")],
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="P", help="The first arrival partition, or a time in it."),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="P", help="The last arrival partition, or a time in it."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> int:
    """Take in what arrived, reorder it, publish windows, amend those that late rows changed.

    Without --from it starts at the first arrival partition that is new or whose input changed;
    without --to it ends with the last complete one that has data. Exit code 1: the books do not
    balance, or a check failed; what is stored is told all the same.
    """
    settings = Settings.from_environment()
    spec = load_specs(settings.streams).stream(stream)
    # Dagster takes seconds to import; a wrong name need not wait for it.
    from orchestration.run import Runner  # noqa: PLC0415
    from orchestration.summary import summary_of_all  # noqa: PLC0415

    with progress_bar() as watcher:
        runner = Runner.of(settings, spec, watcher)
        outcome = runner.run(first, last)
        watcher.say("adding up")
        figures = summary_of_all(settings, runner.lake, spec)
    result = {**done(outcome), **figures, "alerts": list(runner.alerts())}
    show(result, lines(result), as_json=as_json)
    if outcome.failed is not None:
        raise outcome.failed
    return 0 if result["balanced"] else CHECK_FAILED


def done(outcome: "Outcome") -> dict[str, Any]:
    """Return which partitions a run took, as JSON holds them."""
    return {
        "run": {
            "arrival_partitions": list(outcome.arrivals),
            "event_partitions": list(outcome.events),
            "log": str(outcome.log) if outcome.log.exists() else None,
        },
    }


def lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Say for people what came out."""
    yield from of_run(result)
    if "tracks" not in result:
        yield from of_stream(result)
    for name, figures in result.get("tracks", {}).items():
        yield f"track {name}:"
        yield from of_stream(figures)
        yield from of_difference(result["track_difference"].get(name))
    yield from (f"ALERT: {alert}" for alert in result["alerts"])
    yield "every run, partition and figure: lowwater ui, then http://127.0.0.1:3000"


def of_difference(figures: Mapping[str, Any] | None) -> Iterator[str]:
    """Say how far a track is off; nothing of the authoritative one, or where nothing is known."""
    if figures is not None:
        minutes = (figures["equal_after_us"] or 0) / 60_000_000
        yield (
            f"of {figures['windows']:,} windows {figures['windows_off_at_first']:,} were not"
            f" as authoritative at first, {figures['windows_off_now']:,} are not now;"
            f" equal at the latest {minutes:,.1f} minutes of arrivals later"
        )
        largest = figures["largest"]
        for when in ("first", "now"):
            off = {name: most[when] for name, most in largest.items() if most[when]}
            told = ", ".join(f"{name} {most:,.6g}" for name, most in off.items())
            yield f"  farthest off {'at first' if when == 'first' else 'now'}: {told or 'nothing'}"


def of_stream(result: Mapping[str, Any]) -> Iterator[str]:
    """Say what is stored of a stream, or of one of its tracks."""
    yield from of_rows(result)
    windows = result["windows"]
    yield f"{windows['published']:,} windows published, {windows['amended']:,} amended since"
    proofs = told(result["parity"]) or "none proved"
    yield f"the target against the lake, event partitions by verdict: {proofs}"
    if result["parity"].keys() - {"EQUAL"}:
        yield f"  what differs: lowwater parity {result['stream']}; with --repair it is mended"
    worst = result["worst_hour"]
    if worst:
        yield (
            f"worst hour: {worst['start']}, {worst['dead_letters']:,} dead letters and"
            f" {worst['late']:,} late rows among {worst['rows']:,}"
        )
    places = result["places"]
    yield f"tables: {places['tables']}"
    yield f"published windows: {places['published']}"
    yield f"quality report: {places['report']}"


def of_run(result: Mapping[str, Any]) -> Iterator[str]:
    """Say what the run did."""
    run, stream = result["run"], result["stream"]
    arrivals, events = run["arrival_partitions"], run["event_partitions"]
    if not arrivals and not events:
        yield f"{stream} is up to date"
    if arrivals:
        yield f"{stream}: {len(arrivals):,} arrival partitions, {arrivals[0]} to {arrivals[-1]}"
    if events:
        yield f"{stream}: {len(events):,} event partitions reconciled, {events[0]} to {events[-1]}"


def of_rows(result: Mapping[str, Any]) -> Iterator[str]:
    """Say where the rows are."""
    counts = dict(result["counts"])
    verdict = "balanced" if result["balanced"] else "NOT BALANCED"
    yield f"{counts.pop('staged'):,} rows staged; the books are {verdict}"
    notes = {"dead_letters": in_brackets(result["dead_letters_by_outcome"])}
    for state, count in counts.items():
        yield f"  {state.replace('_', ' '):<14}{count:>14,}{notes.get(state, '')}"


def in_brackets(counts: Mapping[str, int]) -> str:
    """Return counts by name, in brackets; nothing where all are zero."""
    return f"  ({text})" if (text := told(counts)) else ""


def told(counts: Mapping[str, int]) -> str:
    """Return the counts that are not zero, with their names."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
