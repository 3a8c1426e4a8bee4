"""The sensors of a stream: what is done when data comes late, or when a source was corrected.

Here belongs what a sensor remembers (its cursor), and what it asks for. Both are stopped until
switched on. A sensor asks for a thing once: a run that fails is not asked for again here, but
by the schedules, which go by what the lake holds.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final, Self

import dagster as dg

from assets.catalogue import Landing, Locks
from assets.outlook import Outlook
from assets.partitions import Axis
from assets.stores.lake import Lake
from assets.stores.marks import digest_of
from assets.touched import waiting_in_any
from orchestration.jobs import arrivals_job, events_job
from orchestration.ranges import ADJACENT, stretches
from orchestration.ticks import WHY, look, named, request, unfinished_run
from transforms.schemas import DEAD_LETTERS, SOURCE_FILES, WINDOW_AGGREGATES
from transforms.spec import StreamSpec

LATE_ROWS: Final = "late_rows"
CHANGED_SOURCES: Final = "changed_sources"
INTERVAL_S: Final = 30
# More runs are asked for by the next ticks.
RUNS_PER_TICK: Final = 25
_NAMED: Final = 10
_WATCHED: Final = (DEAD_LETTERS, WINDOW_AGGREGATES)
_VERSIONS: Final = ("dead_letters", "windows")

Versions = tuple[int | None, ...]
Ticked = dg.SensorResult | dg.SkipReason


def sensors_of(spec: StreamSpec) -> list[dg.SensorDefinition]:
    """Return the sensors of a stream."""
    return [late_rows_sensor(spec), changed_sources_sensor(spec)]


@dataclass(frozen=True)
class Seen:
    """What a look at the lake saw: versions of two tables, and how many dead letters there were.

    The versions are those of each track, in their order.
    """

    dead_letters: Versions = ()
    windows: Versions = ()
    rows: int = 0

    @classmethod
    def read(cls, cursor: str | None) -> Self:
        """Read the text of a cursor; a new sensor has seen nothing."""
        found = json.loads(cursor) if cursor else {}
        dead_letters, windows = (tuple(found.get(name, ())) for name in _VERSIONS)
        return cls(dead_letters, windows, found.get("rows", 0))

    @classmethod
    def now(cls, lake: Lake, spec: StreamSpec) -> Self:
        """Look at the lake; only the logs of two tables are read."""
        names = [part.name for part in spec.computed]
        rows = sum(file.rows for name in names for file in lake.files(name, DEAD_LETTERS))
        dead_letters, windows = (
            tuple(lake.version(name, table) for name in names) for table in _WATCHED
        )
        return cls(dead_letters, windows, rows)

    @property
    def version(self) -> str:
        """One text for all versions."""
        return ".".join(map(str, (*self.dead_letters, *self.windows)))

    def __str__(self) -> str:
        """Return the text of the cursor."""
        return json.dumps(asdict(self))


def late_rows_sensor(spec: StreamSpec) -> dg.SensorDefinition:
    """Return the sensor that reconciles exactly the event partitions that late rows touch."""

    @dg.sensor(
        name=f"{spec.name}_{LATE_ROWS}",
        job_name=events_job(spec.name),
        minimum_interval_seconds=INTERVAL_S,
        description="New dead letters: reconciles the event partitions they touch, once each.",
        tags={"stream": spec.name},
    )
    def late_rows(context: dg.SensorEvaluationContext, lake: dg.ResourceParam[Lake]) -> Ticked:
        before, now = Seen.read(context.cursor), Seen.now(lake, spec)
        if now == before:
            return dg.SkipReason(f"nothing new: {now.rows:,} dead letters, as before")
        run = unfinished_run(context.instance, arrivals_job(spec.name))
        if run is not None:
            return dg.SkipReason(f"run {run.run_id} still takes rows in; looks again after it")
        return told(context, late_rows_tick(spec, lake, before, now))

    return late_rows


def late_rows_tick(spec: StreamSpec, lake: Lake, before: Seen, now: Seen) -> dg.SensorResult:
    """Ask for the event partitions that wait, a run for each stretch without gaps.

    Where there are too many the cursor stays, and the next tick asks for those that are left.
    """
    reasons = waiting_in_any(spec, lake)
    touched = list(stretches(Axis.of_events(spec), list(reasons), ADJACENT))
    words = (
        f"{now.rows:,} dead letters, {now.rows - before.rows:+,} since the last look; "
        f"they touch {_counted(list(reasons))}"
    )
    if not touched:
        return dg.SensorResult(skip_reason=words, cursor=str(now))
    job = events_job(spec.name)
    requests = [
        request(
            job,
            stretch,
            f"{job}:{stretch[0]}..{stretch[-1]}:{now.version}:"
            f"{digest_of(*(reasons[name] for name in stretch))[:16]}",
            words,
        )
        for stretch in touched[:RUNS_PER_TICK]
    ]
    cursor = now if len(requests) == len(touched) else before
    return dg.SensorResult(run_requests=requests, cursor=str(cursor))


def changed_sources_sensor(spec: StreamSpec) -> dg.SensorDefinition:
    """Return the sensor that runs staged partitions again whose files are others now."""

    @dg.sensor(
        name=f"{spec.name}_{CHANGED_SOURCES}",
        job_name=arrivals_job(spec.name),
        minimum_interval_seconds=INTERVAL_S,
        description="Files that changed after staging: runs their partitions and all after them.",
        tags={"stream": spec.name},
    )
    def changed_sources(
        context: dg.SensorEvaluationContext,
        lake: dg.ResourceParam[Lake],
        landing: dg.ResourceParam[Landing],
        locks: dg.ResourceParam[Locks],
    ) -> Ticked:
        outlook = look(context.instance, spec, lake, landing, locks)
        if isinstance(outlook, dg.SkipReason):
            return outlook
        return told(context, changed_sources_tick(outlook))

    return changed_sources


def changed_sources_tick(outlook: Outlook) -> dg.SensorResult:
    """Ask for the staged partitions from the first that its files would make otherwise."""
    due, files = outlook.changed(), len(outlook.files)
    if due is None:
        words = f"{files:,} files, as they were staged"
        return dg.SensorResult(skip_reason=words)
    words = (
        f"{named(due.first, due.last)}: staged from other files than there are now, or not whole"
    )
    version = outlook.lake.version(outlook.spec.name, SOURCE_FILES)
    job = arrivals_job(outlook.spec.name)
    key = f"{job}:{due.first}..{due.last}:{version}:{due.sources[:16]}"
    return dg.SensorResult(run_requests=[request(job, (due.first, due.last), key, words)])


def told(context: dg.SensorEvaluationContext, result: dg.SensorResult) -> dg.SensorResult:
    """Say in the log of the tick what is asked for; a tick that asks for nothing says it itself."""
    for asked in result.run_requests or ():
        context.log.info("%s: %s", asked.job_name, asked.tags[WHY])
    return result


def _counted(partitions: list[str]) -> str:
    if not partitions:
        return "no event partition that is not reconciled"
    more = f" and {len(partitions) - _NAMED} more" if len(partitions) > _NAMED else ""
    return f"{len(partitions):,} event partitions: {', '.join(partitions[:_NAMED])}{more}"
