"""Running checks: evidence is gathered, summed up per partition, judged, and told as verdicts.

Here belongs the way from what is stored to verdicts. Evidence is gathered for many partitions at
once, in chunks of a bounded number of rows; each partition gets its own verdict.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

import polars as pl

from expectations.evidence.questions import QUESTIONS
from expectations.evidence.tables import EVIDENCE
from expectations.invariants import Invariant
from expectations.results import Fault, Results, Verdict
from expectations.stored import Partition, Stored, opened
from expectations.suites.judge import EVIDENCE_IS_MISSING, judge
from expectations.suites.stages import STAGES
from transforms.schemas import (
    STAGED_EVENTS,
    WINDOW_HISTORY,
)

WORST: Final = 10
CHUNK_ROWS: Final = 20_000_000

Evidence = Mapping[str, pl.DataFrame]


def check(
    stored: Stored, stage: str, folders: Sequence[Path], now: datetime, *, run_id: str = ""
) -> list[Verdict]:
    """Judge a stage in the partitions of ``stored``; verdicts and validations are kept.

    ``folders`` are those of the reports that tell of it, one for each track that shares what is
    stored. Returns a verdict for each partition and invariant.
    """
    invariants = STAGES[stage]
    stored = replace(stored, now_us=int(now.timestamp() * 1_000_000))
    evidence = gather(stored, invariants)
    summary = summarize(stored, invariants, evidence)
    judged = [judge(folder, stage, invariants, summary, now) for folder in folders]
    verdicts = [
        replace(verdict, judged_at=now.isoformat(timespec="seconds"), run_id=run_id)
        for invariant in invariants
        for verdict in _verdicts(stored, invariant, evidence[invariant.name], judged[0])
    ]
    for folder in folders:
        Results(folder).keep(stage, verdicts)
    return verdicts


def gather(stored: Stored, invariants: Iterable[Invariant]) -> dict[str, pl.DataFrame]:
    """Return the evidence of each invariant, by name."""
    found: dict[str, list[pl.DataFrame]] = {invariant.name: [] for invariant in invariants}
    for chunk in _chunks(stored):
        with opened(stored.judging(chunk)) as store:
            for name, frames in found.items():
                frames.append(QUESTIONS[name](store))
    return {name: pl.concat([EVIDENCE.to_frame(), *frames]) for name, frames in found.items()}


def _chunks(stored: Stored) -> Iterator[list[Partition]]:
    chunk, rows = list[Partition](), 0
    for partition in stored.partitions:
        size = stored.rows(STAGED_EVENTS, partition.key)
        if chunk and rows + size > CHUNK_ROWS:
            yield chunk
            chunk, rows = [], 0
        chunk.append(partition)
        rows += size
    if chunk:
        yield chunk


def summarize(stored: Stored, invariants: Iterable[Invariant], evidence: Evidence) -> pl.DataFrame:
    """Return a row for each partition: violations, and where evidence is missing, by invariant."""
    keys = [partition.key for partition in stored.partitions]
    columns: dict[str, list[int]] = {}
    for invariant in invariants:
        sums = _sums(evidence[invariant.name])
        columns[invariant.name] = [sums.get(key, (0, 0))[1] for key in keys]
        columns[EVIDENCE_IS_MISSING.format(invariant.name)] = [
            int(sums.get(key, (0, 0))[0] == 0 and has_rows(stored, invariant, key)) for key in keys
        ]
    return pl.DataFrame({"partition": keys, **columns}, schema_overrides={"partition": pl.String})


def _sums(evidence: pl.DataFrame) -> dict[str, tuple[int, int]]:
    sums = evidence.group_by("partition").agg(pl.col("examined", "violations").sum())
    return {key: (examined, wrong) for key, examined, wrong in sums.iter_rows()}


def has_rows(stored: Stored, invariant: Invariant, partition: str) -> bool:
    """Whether the log of the lake says that there is something to look at."""
    is_event = invariant.axis == "event"
    table = WINDOW_HISTORY if is_event else invariant.asset
    return stored.rows(table, partition) > 0


def _verdicts(
    stored: Stored,
    invariant: Invariant,
    evidence: pl.DataFrame,
    failing: Mapping[str, set[str]],
) -> Iterator[Verdict]:
    sums = _sums(evidence)
    faults = evidence.filter(pl.col("violations") != 0).sort("violations", descending=True)
    by_partition = faults.partition_by("partition", as_dict=True)
    for partition in stored.partitions:
        examined, violations = sums.get(partition.key, (0, 0))
        missing = partition.key in failing[EVIDENCE_IS_MISSING.format(invariant.name)]
        wrong = by_partition.get((partition.key,), faults.clear())
        yield Verdict(
            invariant.name,
            partition.key,
            passed=not missing and partition.key not in failing[invariant.name],
            examined=examined,
            violations=violations,
            evidence_is_missing=missing,
            faults=wrong.height,
            worst=tuple(
                Fault(subject or "", violations, detail or "")
                for subject, violations, detail in wrong.select("subject", "violations", "detail")
                .head(WORST)
                .iter_rows()
            ),
        )
