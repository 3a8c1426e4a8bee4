"""What people are told of: failed runs and checks, dead letters, stale streams, sick targets.

Here belongs what is an alert, and the sensor that looks for them. Each is told of once; one that
could not be delivered is told of by the next tick. How it is delivered is in ``hooks``.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self

import dagster as dg
import polars as pl
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from assets.alerts import warnings_of
from assets.partitions import Axis
from assets.stores import source_files
from assets.stores.lake import Lake
from assets.stores.tables import REJECTED_COUNT, STAGED_COUNT, unit_of
from orchestration.hooks import Alert, Hook
from orchestration.ranges import FIRST, LAST
from orchestration.ticks import named
from transforms.schemas import DEAD_LETTERS, STAGED_SOURCES, WATERMARKS
from transforms.spec import StreamSpec
from transforms.spec.fields import format_instant

NAME: Final = "alerts"
INTERVAL_S: Final = 60
RUN_FAILED: Final = "run_failed"
CHECK_FAILED: Final = "check_failed"
DEAD_LETTERS_HIGH: Final = "dead_letters_high"
STALE: Final = "stale_stream"
TARGET_TROUBLE: Final = "target_trouble"
# How far back a look goes for runs that ended before the last look but were noted after it.
_OVERLAP_S: Final = 300
FAILED: Final = AssetCheckExecutionRecordStatus.FAILED
_REMEMBERED: Final = 500
_PARTITION: Final = "dagster/partition"


@dataclass(frozen=True)
class Told:
    """The cursor: since when runs were looked at (epoch seconds), and what was told of."""

    since: float
    keys: tuple[str, ...] = ()
    partitions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, cursor: str | None, now: float) -> Self:
        """Read the text of a cursor; a new sensor does not look back."""
        found: dict[str, Any] = json.loads(cursor) if cursor else {"since": now}
        return cls(found["since"], tuple(found.get("keys", ())), found.get("partitions", {}))

    def __str__(self) -> str:
        """Return the text of the cursor."""
        return json.dumps(asdict(self))


def alerts_sensor(
    specs: Iterable[StreamSpec], hooks: Sequence[Hook], ui: str = ""
) -> dg.SensorDefinition:
    """Return the sensor of the installation; it is on from the start if somebody is to be told."""
    streams = list(specs)
    status = dg.DefaultSensorStatus.RUNNING if hooks else dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        name=NAME,
        minimum_interval_seconds=INTERVAL_S,
        default_status=status,
        description="Tells of failed runs and checks, of too many dead letters, of stale streams.",
    )
    def alerts(
        context: dg.SensorEvaluationContext, lake: dg.ResourceParam[Lake]
    ) -> dg.SensorResult:
        now = time.time()
        told = Told.read(context.cursor, now)
        found = [*failures(context.instance, told.since, ui)]
        partitions = dict(told.partitions)
        for spec in streams:
            found += stale(spec, lake, round(now * 1_000_000))
            found += target_trouble(context.instance, spec, told.since)
            for part in spec.computed:
                last = last_complete(part, lake)
                found += dead_letters_high(part, lake, told.partitions.get(part.name))
                partitions |= {part.name: last} if last else {}
        new = [alert for alert in found if alert.key not in told.keys]
        for alert in new:
            context.log.warning(alert.text)
            for hook in hooks:
                hook.tell(alert)
        keys = [*told.keys, *(alert.key for alert in new)][-_REMEMBERED:]
        words = "; ".join(alert.text for alert in new) or "all is well"
        cursor = str(Told(max(told.since, now - _OVERLAP_S), tuple(keys), partitions))
        return dg.SensorResult(skip_reason=words, cursor=cursor)

    return alerts


def failures(instance: dg.DagsterInstance, since: float, ui: str = "") -> Iterator[Alert]:
    """Yield an alert for each run that failed after a time (epoch seconds), oldest first."""
    records = instance.get_run_records(
        dg.RunsFilter(
            statuses=[dg.DagsterRunStatus.FAILURE], updated_after=datetime.fromtimestamp(since, UTC)
        )
    )
    for record in reversed(records):
        yield _of_run(instance, record.dagster_run, ui)


def _of_run(instance: dg.DagsterInstance, run: dg.DagsterRun, ui: str) -> Alert:
    checks = failed_checks(instance, run.run_id)
    stream = run.tags.get("stream", "")
    partition = run.tags.get(_PARTITION, "")
    first, last = run.tags.get(FIRST, partition), run.tags.get(LAST, partition)
    what = f"{run.job_name} {named(first, last)}".strip()
    where = f" {ui.rstrip('/')}/runs/{run.run_id}" if ui else f" (run {run.run_id})"
    if checks:
        text = f"{what}: the check {', '.join(checks)} failed, what comes after was not run{where}"
        return Alert(CHECK_FAILED, stream, f"run:{run.run_id}", text)
    return Alert(RUN_FAILED, stream, f"run:{run.run_id}", f"{what} failed{where}")


def failed_checks(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """Return the names of the blocking checks that did not pass in a run."""
    found: dict[str, None] = {}
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION):
        event = entry.dagster_event
        if event is not None:
            evaluation = event.asset_check_evaluation_data
            if evaluation.blocking and not evaluation.passed:
                found[evaluation.check_name] = None
    return list(found)


def target_trouble(instance: dg.DagsterInstance, spec: StreamSpec, since: float) -> Iterator[Alert]:
    """Yield an alert for each check of a publication that warned after a time (epoch seconds)."""
    checks = [check for part in spec.computed for check in warnings_of(part)]
    records = instance.event_log_storage.get_latest_asset_check_execution_by_key(checks)
    for check, record in records.items():
        event = record.event.dagster_event if record.event else None
        # A check that a run has planned, and not come to, has no verdict.
        if record.status is not FAILED or event is None or record.create_timestamp < since:
            continue
        said = event.asset_check_evaluation_data.description
        text = f"{check.asset_key.path[0]}: {said} ({check.name})"
        yield Alert(TARGET_TROUBLE, spec.name, f"target:{check.name}:{record.run_id}", text)


def last_complete(spec: StreamSpec, lake: Lake) -> str | None:
    """Return the newest arrival partition that is complete."""
    complete = Axis.of_arrivals(spec).in_order(lake.partitions(spec.name, WATERMARKS))
    return complete[-1] if complete else None


def dead_letters_high(spec: StreamSpec, lake: Lake, since: str | None) -> Iterator[Alert]:
    """Yield an alert for each complete partition after one with too many dead letters.

    A look for the first time is at the newest partition alone.
    """
    level = spec.alerts.dead_letter_fraction
    axis = Axis.of_arrivals(spec)
    complete = axis.in_order(lake.partitions(spec.name, WATERMARKS))
    if level is None or not complete:
        return
    new = [key for key in complete if since and axis.position(key) > axis.position(since)]
    for partition, staged, dead in _counts(spec, lake, new if since else complete[-1:]):
        if dead > level * staged:
            yield Alert(
                DEAD_LETTERS_HIGH,
                spec.name,
                f"dead_letters:{spec.name}:{partition}",
                f"{spec.name} {partition}: {dead:,} of {staged:,} rows are dead letters, "
                f"{dead / staged:.1%}; the level is {level:.1%}. "
                f"See lowwater dead-letters {spec.name}",
            )


def _counts(
    spec: StreamSpec, lake: Lake, partitions: Sequence[str]
) -> Iterator[tuple[str, int, int]]:
    """Partitions with their staged rows and their dead letters."""
    unit = unit_of(lake, spec, WATERMARKS)
    dead = unit.rows(DEAD_LETTERS)
    for partition in partitions:
        notes = unit.read(STAGED_SOURCES, partitions=[partition])
        staged = int(
            notes.select(pl.col(STAGED_COUNT, REJECTED_COUNT).sum()).sum_horizontal().item()
        )
        yield partition, staged, dead.get(partition, 0)


def stale(spec: StreamSpec, lake: Lake, now_us: int) -> Iterator[Alert]:
    """Yield an alert if the newest row that was read is older than the stream allows."""
    allowed_us = spec.alerts.stale_after_us
    files = source_files.load(lake, spec.name).values() if allowed_us is not None else ()
    lasts = [file.last_us for file in files if file.last_us is not None]
    if allowed_us is None or not lasts or now_us - max(lasts) <= allowed_us:
        return
    last = format_instant(max(lasts))
    yield Alert(
        STALE,
        spec.name,
        f"stale:{spec.name}:{last}",
        f"{spec.name}: nothing has arrived since {last}; see whether its source still delivers",
    )
