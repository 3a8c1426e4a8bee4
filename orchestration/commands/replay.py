"""``lowwater replay``: an arrival log through the transforms, into a directory of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestration.commands.result import AsJson, show
from transforms.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHECK_FAILED = 1


def command(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC.yaml", help="The stream spec, a YAML file.")
    ],
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input", metavar="FILE", help="The arrival log: one or more files, in source order."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The directory that takes the result.")
    ],
    cut: Annotated[
        int,
        typer.Option(
            "--cut", min=1, metavar="N", help="Cut the arrivals into N parts of equal row count."
        ),
    ] = 1,
    until: Annotated[
        str | None,
        typer.Option(
            "--until", metavar="TIME", help="Arrivals are known complete up to this time (UTC)."
        ),
    ] = None,
    *,
    track: Annotated[
        str | None,
        typer.Option("--track", metavar="NAME", help="Of a spec with tracks: the one to replay."),
    ] = None,
    flush: Annotated[
        bool, typer.Option("--flush", help="Release and publish what is open at the end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replay an arrival log into a directory of its own.

    No Dagster, no shared state; the result is Parquet files and books.json.

    SPEC comes first; several files may follow one --input. Of a spec with tracks the authoritative
    one is replayed. Exit code 1: the books do not balance.
    """
    # Polars and DuckDB take most of a second to import; `lowwater --help` does without them.
    from orchestration.replay import replay  # noqa: PLC0415

    until_us = instant_us("--until", until)
    result = replay(spec, inputs, out, cut=cut, until_us=until_us, flush=flush, track=track)
    show(result, lines(result), as_json=as_json)
    if not result["balanced"]:
        raise typer.Exit(CHECK_FAILED)


def instant_us(option: str, text: str | None) -> int | None:
    """Read a time of the command line, in UTC where it has no offset."""
    from transforms.spec.fields import parse_instant  # noqa: PLC0415

    try:
        return None if text is None else parse_instant(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: allowed is {error}") from error


def lines(result: "Mapping[str, Any]") -> "Iterator[str]":
    """Say for people what came out."""
    counts, windows = result["counts"], result["windows"]
    verdict = "balanced" if result["balanced"] else "NOT BALANCED"
    yield f"{counts['staged']:,} rows read; the books are {verdict}"
    for state, count in counts.items():
        if state != "staged":
            yield f"  {state.replace('_', ' '):<14}{count:>14,}{reasons_of(state, result)}"
    yield (
        f"{windows['current']:,} windows; {windows['amended']:,} amended,"
        f" {windows['withdrawn']:,} withdrawn, {windows['revisions']:,} revisions"
    )
    yield f"written to {result['out']}"


def reasons_of(state: str, result: "Mapping[str, Any]") -> str:
    """Return the reasons of dead letters or rejected rows, in brackets."""
    found = result.get(f"{state}_by_reason", {})
    listed = ", ".join(f"{reason} {count:,}" for reason, count in found.items())
    return f"  ({listed})" if listed else ""
