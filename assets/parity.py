"""Parity: the target holds, bit for bit, what was published; proved by event partition.

Here belongs which partitions are proved, and what is kept and told of it. How a proof is made is
``assets.stores.parity``, what it means ``transforms.parity.proof``.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import dagster as dg
import polars as pl

from assets.catalogue import (
    Locks,
    asset_spec,
    dep,
)
from assets.history import History, Targets
from assets.metadata import ROWS, Metadata
from assets.partitions import Axis
from assets.steps import Done, Stores, step
from assets.stores.lake import Slot
from assets.stores.marks import Mark
from assets.stores.parity.options import Options, Wanted
from assets.stores.parity.side import READING, Reading
from assets.stores.parity.stream_proof import Kept, StreamProof, StreamSides
from assets.stores.tables import (
    NUMBER,
    SOURCE_ROOT,
    SOURCE_ROWS,
    SUMMARY,
    TARGET_ROOT,
    TARGET_ROWS,
    VERDICT,
    frame_schema,
    unit_of,
)
from transforms.parity.grid import Cut, Grid
from transforms.parity.proof import Partition, Proof
from transforms.parity.verdict import Verdict as Finding
from transforms.schemas import (
    AMENDED_WINDOWS,
    PUBLISHED_WINDOWS,
    STORED_NAMES,
    TARGET_PARITY,
    WINDOW_HISTORY,
    WINDOW_START_US,
)
from transforms.spec import StreamSpec
from transforms.spec.partitions import GRAIN_US

DESCRIPTION: Final = "Proof that the target holds what was published for this day of events."
# What lies in no partition that is proved; nothing should.
ELSEWHERE: Final = "elsewhere"


@dataclass(frozen=True)
class Proved:
    """What the proof of an event partition said, as it is kept."""

    partition: str
    row: pl.DataFrame

    def figures(self) -> Metadata:
        """Return what the UI shows of the partition."""
        kept = self.row.row(0, named=True)
        counts = json.loads(kept[SUMMARY])["counts"]
        found = {f"windows_{name.lower()}": count for name, count in counts.items() if count}
        return {
            ROWS: kept[TARGET_ROWS],
            VERDICT: kept[VERDICT],
            **{name: kept[name] for name in (SOURCE_ROWS, SOURCE_ROOT, TARGET_ROOT, NUMBER)},
            **found,
        }


def prove_partitions(
    history: History, targets: Targets, partitions: Sequence[str]
) -> Iterator[Proved]:
    """Prove event partitions, all in one go; yields each of them when its proof is kept."""
    spec = history.spec
    unit = unit_of(history.lake, spec, TARGET_PARITY)
    rows = unit.rows(WINDOW_HISTORY)
    today = Options(datetime.now(UTC).date(), grid=grid(history, partitions))
    found = sides(history, targets).prove(partitions, today)
    with unit:
        for partition in _each(found, partitions):
            row = _row(spec, found, partition)
            mark = Mark.of(spec, _made_from(rows, partition.name, row[VERDICT].item()))
            unit.replace(TARGET_PARITY, Slot(partition.name), row, str(mark))
            yield Proved(partition.name, row)
        unit.flush()


def prove_stream(spec: StreamSpec, resources: Mapping[str, Any], wanted: Wanted) -> Proof:
    """Prove all that was ever published, and that nothing else is in the target; repair it if told.

    Nobody writes to the stream meanwhile.
    """
    history = History(resources["lake"], spec, Axis.of_events(spec))
    locks: Locks = resources["locks"]
    with locks.of(spec.staged_as)():
        rows = unit_of(history.lake, spec, TARGET_PARITY).rows(WINDOW_HISTORY)
        partitions = history.events.in_order(rows)
        how = replace(wanted.options, grid=grid(history, partitions, rest=ELSEWHERE))
        both = sides(history, resources["targets"], wanted.how)
        if wanted.mend:
            return both.repair(partitions, how, wanted.approved).proof
        kept = Kept(wanted.resume, rows) if wanted.resume else None
        return both.prove(partitions, how, kept).proof


def sides(history: History, targets: Targets, how: Reading = READING) -> StreamSides:
    """Return what a proof of the stream reads."""
    spec = history.spec
    return StreamSides(spec, targets.sink_of(spec), f"lake of {spec.name}", history.chunks, how)


def grid(history: History, partitions: Iterable[str], *, rest: str = "") -> Grid:
    """Return where partitions are: windows by their start, on the grid of the event partitions."""
    events, grain_us = history.events, GRAIN_US[history.spec.events.grain]
    cut = Cut(STORED_NAMES[WINDOW_START_US], history.spec.events.start_us, grain_us)
    return Grid(cut, {events.position(name): name for name in events.in_order(partitions)}, rest)


def unproved(history: History) -> list[str]:
    """Return the event partitions that have to be proved, oldest first.

    Those that were published to since, and those that were not equal: they may have been mended.
    """
    unit = unit_of(history.lake, history.spec, TARGET_PARITY)
    rows = unit.rows(WINDOW_HISTORY)
    seen = {name: Mark.read(text).made_from for name, text in unit.marks(TARGET_PARITY).items()}
    new = [name for name in rows if seen.get(name) != _made_from(rows, name)]
    return history.events.in_order(new)


def _made_from(rows: dict[str, int], partition: str, verdict: str = Finding.EQUAL) -> str:
    # History is only added to, so the number of its rows tells one state from another.
    revisions = str(rows.get(partition, 0))
    return revisions if verdict == Finding.EQUAL else f"{revisions} {verdict}"


def _each(found: StreamProof, partitions: Sequence[str]) -> list[Partition]:
    """Return all partitions; of a proof that was refused, each without a cell."""
    if found.proof.refused:
        return [Partition(name, {}, {}) for name in partitions]
    return found.proof.partitions


def _row(spec: StreamSpec, found: StreamProof, partition: Partition) -> pl.DataFrame:
    proof = found.of(partition)
    summary = proof.summary()
    verdict = summary["verdict"]
    if partition.name in found.superseded:
        verdict = Finding.SUPERSEDED
    elif not proof.refused and not summary["amber"] and found.is_equal(partition):
        verdict = Finding.EQUAL
    kept = {
        VERDICT: str(verdict),
        SOURCE_ROWS: summary["rows"]["source"],
        TARGET_ROWS: summary["rows"]["target"],
        SOURCE_ROOT: summary["roots"]["source"],
        TARGET_ROOT: summary["roots"]["target"],
        NUMBER: found.numbers.get(partition.name, 0),
        SUMMARY: json.dumps(summary),
    }
    return pl.DataFrame([kept], schema=frame_schema(spec, TARGET_PARITY))


def parity_assets(spec: StreamSpec, events: Axis) -> dg.AssetsDefinition:
    """Return the asset ``target_parity`` of a stream, by event partition."""
    deps = [
        dep(spec, AMENDED_WINDOWS),
        dep(spec, PUBLISHED_WINDOWS, dg.AllPartitionMapping()),
    ]

    def work(stores: Stores, partitions: Sequence[str]) -> Iterator[Done]:
        history = History(stores.lake, spec, events)
        for proved in prove_partitions(history, stores.targets, partitions):
            yield proved.partition, {TARGET_PARITY: proved.figures()}

    specs = [asset_spec(spec, TARGET_PARITY, DESCRIPTION, deps, ("deltalake", "duckdb"))]
    return step(spec, "parity", events, specs, work)
