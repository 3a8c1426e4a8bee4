"""The schedules of a stream: when its jobs run by the clock. All are stopped until switched on.

Here belongs when something is done. What is due is decided by what the lake holds, never by which
ticks there were: a tick that was missed, came twice, or was moved by a change of the clock changes
nothing, and the next one catches up, in order, in one run.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

import dagster as dg

from assets.catalogue import Landing, Locks
from assets.outlook import Outlook
from assets.partitions import Axis
from assets.stores.lake import Lake
from assets.touched import waiting_in_any
from assets.tracks import uncompared
from orchestration.jobs import arrivals_job, events_job, parity_job, tracks_job
from orchestration.ranges import parts, stretches
from orchestration.ticks import look, named, request, unfinished_run
from transforms.durations import MINUTE_US
from transforms.schemas import WINDOW_HISTORY
from transforms.spec import StreamSpec

Tick = dg.RunRequest | dg.SkipReason

RECONCILE_AT: Final = "35 * * * *"
COMPARE_AT: Final = "50 * * * *"
PARITY_AT: Final = "15 3 * * *"
REPORT_AT: Final = "45 5 * * *"
ADVICE_AT: Final = "15 5 * * 1"
# Jobs that take no partitions, where a stream has them.
_PLAIN: Final = {"report": REPORT_AT, "advice": ADVICE_AT}
_QUARTER: Final = 15


def schedules_of(spec: StreamSpec, jobs: Sequence[str]) -> list[dg.ScheduleDefinition]:
    """Return the schedules of a stream; ``jobs`` are the names of the jobs it has."""
    found = [arrivals_schedule(spec), reconciliation_schedule(spec), parity_schedule(spec)]
    if spec.tracks:
        found.append(tracks_schedule(spec))
    plain = {f"{spec.name}_{name}": cron for name, cron in _PLAIN.items()}
    return found + [plain_schedule(job, cron) for job, cron in plain.items() if job in jobs]


def arrivals_cron(spec: StreamSpec) -> str:
    """Return when to look for complete arrival partitions: on the minute they settle, in UTC.

    Every quarter of an hour whatever the grain, for zones and changes of their clocks keep to that
    grid, and no clock of a zone is asked; and what failed gets another try.
    """
    minutes = -(-spec.arrival.settle_us // MINUTE_US)
    return f"{minutes % _QUARTER}-59/{_QUARTER} * * * *"


def arrivals_schedule(spec: StreamSpec) -> dg.ScheduleDefinition:
    """Return the schedule that takes arrival partitions in when they are complete."""

    @dg.schedule(
        name=f"{arrivals_job(spec.name)}_when_complete",
        job_name=arrivals_job(spec.name),
        cron_schedule=arrivals_cron(spec),
        execution_timezone="UTC",
        description="Runs the arrival partitions that are complete, from the first unfinished one.",
        tags={"stream": spec.name},
    )
    def schedule(
        context: dg.ScheduleEvaluationContext,
        lake: dg.ResourceParam[Lake],
        landing: dg.ResourceParam[Landing],
        locks: dg.ResourceParam[Locks],
    ) -> Tick:
        outlook = look(context.instance, spec, lake, landing, locks)
        if isinstance(outlook, dg.SkipReason):
            return outlook
        return arrivals_tick(outlook, context.scheduled_execution_time)

    return schedule


def arrivals_tick(outlook: Outlook, now: datetime) -> Tick:
    """Ask for the arrival partitions that are due at a time, in one run, or say why not."""
    due = outlook.due(round(now.timestamp() * 1_000_000))
    if due is None:
        return dg.SkipReason("all partitions that are complete have been run")
    why = f"{named(due.first, due.last)}: complete, and not run yet or run from other files"
    key = f"{due.first}..{due.last}:{due.sources[:16]}"
    return request(arrivals_job(outlook.spec.name), (due.first, due.last), key, why)


def reconciliation_schedule(spec: StreamSpec) -> dg.ScheduleDefinition:
    """Return the schedule that reconciles whatever event partitions wait."""

    def partitions(lake: Lake, _events: Axis) -> Sequence[str]:
        return list(waiting_in_any(spec, lake))

    return _over_events(
        spec, events_job(spec.name), RECONCILE_AT, partitions, "Reconciles event partitions."
    )


def parity_schedule(spec: StreamSpec) -> dg.ScheduleDefinition:
    """Return the schedule that proves all that was ever published."""

    def partitions(lake: Lake, events: Axis) -> Sequence[str]:
        published = (lake.partitions(part.name, WINDOW_HISTORY) for part in spec.computed)
        return events.in_order(set().union(*published))

    return _over_events(
        spec, parity_job(spec.name), PARITY_AT, partitions, "Proves the target, every partition."
    )


def tracks_schedule(spec: StreamSpec) -> dg.ScheduleDefinition:
    """Return the schedule that compares the tracks where one of them said more."""

    def partitions(lake: Lake, events: Axis) -> Sequence[str]:
        return uncompared(spec, lake, events)

    return _over_events(
        spec, tracks_job(spec.name), COMPARE_AT, partitions, "Compares the tracks of the stream."
    )


def plain_schedule(job: str, cron: str) -> dg.ScheduleDefinition:
    """Return the schedule of a job without partitions."""
    return dg.ScheduleDefinition(
        name=f"{job}_by_the_clock", job_name=job, cron_schedule=cron, execution_timezone="UTC"
    )


def _over_events(
    spec: StreamSpec,
    job: str,
    cron: str,
    partitions: Callable[[Lake, Axis], Sequence[str]],
    description: str,
) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=f"{job}_by_the_clock",
        job_name=job,
        cron_schedule=cron,
        execution_timezone="UTC",
        description=description,
        tags={"stream": spec.name},
    )
    def schedule(
        context: dg.ScheduleEvaluationContext, lake: dg.ResourceParam[Lake]
    ) -> Iterator[Tick]:
        run = unfinished_run(context.instance, job)
        if run is not None:
            yield dg.SkipReason(f"run {run.run_id} is not done")
            return
        events = Axis.of_events(spec)
        found = partitions(lake, events)
        if not found:
            yield dg.SkipReason("no event partition waits")
        for stretch in stretches(events, found):
            for part in parts(stretch):
                what = named(part[0], part[-1])
                yield request(job, part, what, f"{what}: by the clock")

    return schedule
