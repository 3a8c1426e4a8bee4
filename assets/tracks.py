"""Track difference: how far each track was off, by event partition, and how it came to agree.

Here belongs which histories are compared, and when a partition has to be compared anew. The
comparison is ``transforms.tracks``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import dagster as dg
import polars as pl

from assets.catalogue import (
    asset_spec,
    dep,
)
from assets.history import History
from assets.metadata import ROWS, Metadata
from assets.partitions import Axis
from assets.steps import Done, Stores, step
from assets.stores.lake import Lake, Slot
from assets.stores.marks import Mark, changes, digest_of
from assets.stores.tables import unit_of
from transforms.durations import MINUTE_US
from transforms.schemas import (
    AMENDED_WINDOWS,
    PUBLISHED_WINDOWS,
    TRACK_DIFFERENCE,
    WINDOW_HISTORY,
)
from transforms.spec import StreamSpec
from transforms.spec.tracks import AUTHORITATIVE
from transforms.tracks import (
    EQUAL_AFTER_US,
    TRACK,
    convergence,
    largest_differences,
    track_difference,
)

DESCRIPTION: Final = "How far each revision of a track is off what the authoritative one says now."


@dataclass(frozen=True)
class Difference:
    """How the tracks differ in an event partition: a row for each revision of each track."""

    partition: str
    rows: pl.DataFrame

    def figures(self) -> Metadata:
        """Return what the UI shows of the partition."""
        told: Metadata = {ROWS: self.rows.height}
        for row in convergence(self.rows).to_dicts():
            track, after_us = row.pop(TRACK), row.pop(EQUAL_AFTER_US)
            told |= {f"{track}_{name}": figure for name, figure in row.items()}
            told[f"{track}_equal_after_minutes"] = round((after_us or 0) / MINUTE_US, 1)
        largest = largest_differences(self.rows).to_dicts()
        return {**told, "largest_differences": dg.MetadataValue.md(_as_markdown(largest))}


def _as_markdown(largest: Sequence[dict[str, Any]]) -> str:
    lines = ["| track | published | first | now |", "| --- | --- | --: | --: |"]
    return "\n".join([*lines, *(f"| {' | '.join(map(_cell, row.values()))} |" for row in largest)])


def _cell(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def compare_tracks(
    spec: StreamSpec, lake: Lake, events: Axis, partitions: Sequence[str]
) -> Iterator[Difference]:
    """Compare the tracks over event partitions; yields each of them when it is written."""
    histories = {track: History(lake, spec.of_track(track), events) for track in spec.tracks}
    made_from = _said(spec, lake)
    with unit_of(lake, spec, TRACK_DIFFERENCE) as unit:
        for partition in partitions:
            rows = _differences(spec, histories, partition)
            mark = Mark.of(spec, made_from.get(partition, digest_of()))
            unit.replace(TRACK_DIFFERENCE, Slot(partition), rows, str(mark))
            yield Difference(partition, rows)
            unit.finish()


def _differences(spec: StreamSpec, histories: dict[str, History], partition: str) -> pl.DataFrame:
    said = {track: history.read([partition]) for track, history in histories.items()}
    truth = said.pop(AUTHORITATIVE)
    return pl.concat([track_difference(spec, track, rows, truth) for track, rows in said.items()])


def uncompared(spec: StreamSpec, lake: Lake, events: Axis) -> list[str]:
    """Return the event partitions of which a track has said more since, oldest first."""
    if not spec.tracks:
        return []
    marks = unit_of(lake, spec, TRACK_DIFFERENCE).marks(TRACK_DIFFERENCE)
    compared = {name: Mark.read(text) for name, text in marks.items()}
    new = (
        name
        for name, made_from in _said(spec, lake).items()
        if name not in compared
        or compared[name].made_from != made_from
        or changes(spec, compared[name])
    )
    return events.in_order(new)


def _said(spec: StreamSpec, lake: Lake) -> dict[str, str]:
    """Return a digest of the files that the tracks' histories have of each event partition."""
    names: dict[str, list[str]] = {}
    for part in spec.computed:
        for file in lake.files(part.name, WINDOW_HISTORY):
            names.setdefault(file.partition, []).extend((part.name, file.path))
    return {partition: digest_of(*listed) for partition, listed in names.items()}


def track_assets(spec: StreamSpec, events: Axis) -> list[dg.AssetsDefinition]:
    """Return the asset ``track_difference`` of a stream; none for one without tracks."""
    return [_difference_asset(spec, events)] if spec.tracks else []


def _difference_asset(spec: StreamSpec, events: Axis) -> dg.AssetsDefinition:
    everything = dg.AllPartitionMapping()
    deps = [dep(part, PUBLISHED_WINDOWS, everything) for part in spec.computed]
    deps += [dep(part, AMENDED_WINDOWS) for part in spec.computed]

    def work(stores: Stores, partitions: Sequence[str]) -> Iterator[Done]:
        for difference in compare_tracks(spec, stores.lake, events, partitions):
            yield difference.partition, {TRACK_DIFFERENCE: difference.figures()}

    specs = [asset_spec(spec, TRACK_DIFFERENCE, DESCRIPTION, deps)]
    return step(spec, "tracks", events, specs, work)
