"""The jobs that keep an installation small: one for the instance, one for each stream.

Here belongs how pruning is run and shown. What is deleted, and what never is, is in ``retention``.
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Final

import dagster as dg

from assets.catalogue import Locks, pool_of
from assets.stores.lake import Lake
from assets.stores.lock import StreamLock
from orchestration.policies import EXECUTOR, run_tags
from orchestration.retention import Pruned, prune_files, prune_lake, prune_runs
from orchestration.schedules import plain_schedule
from orchestration.settings import Settings
from transforms.spec import StreamSpec

INSTANCE_JOB: Final = "maintenance"
INSTANCE_AT: Final = "15 4 * * *"
STREAM_AT: Final = "45 4 * * *"


def maintenance_job(stream: str) -> str:
    """Return the name of the job that maintains a stream."""
    return f"{stream}_maintenance"


def instance_maintenance(settings: Settings) -> dg.JobDefinition:
    """Return the job that prunes old runs, their events, and logs."""

    @dg.op(name="prune_runs")
    def prune(context: dg.OpExecutionContext) -> None:
        _told(context, prune_runs(context.instance, settings.keep_runs_days))
        _told(context, prune_files([settings.logs], settings.keep_reports_days))

    @dg.job(
        name=INSTANCE_JOB,
        executor_def=EXECUTOR,
        description="Deletes runs, events and logs that are old and that nothing shows any more.",
    )
    def job() -> None:
        prune()

    return job


def stream_maintenance(settings: Settings, spec: StreamSpec) -> dg.JobDefinition:
    """Return the job that prunes versions of the lake and old reports of a stream."""

    @dg.op(name=f"{spec.name}__prune", pool=pool_of(spec))
    def prune(
        context: dg.OpExecutionContext,
        lake: dg.ResourceParam[Lake],
        locks: dg.ResourceParam[Locks],
    ) -> None:
        lock = StreamLock(locks.folder, spec.name, locks.patience_s)
        _told(context, prune_lake(spec, lake, lock, settings.keep_versions_days))
        folders = [settings.reports / part.name / "validations" for part in spec.computed]
        _told(context, prune_files(folders, settings.keep_reports_days))

    @dg.job(
        name=maintenance_job(spec.name),
        executor_def=EXECUTOR,
        tags=run_tags(spec.name),
        description="Deletes old versions of the lake and old reports.",
    )
    def job() -> None:
        prune()

    return job


def upkeep(settings: Settings, specs: Iterable[StreamSpec]) -> dg.Definitions:
    """Return the jobs of an installation and their daily schedules, which are stopped."""
    of_streams = [stream_maintenance(settings, spec) for spec in specs]
    return dg.Definitions(
        jobs=[instance_maintenance(settings), *of_streams],
        schedules=[
            plain_schedule(INSTANCE_JOB, INSTANCE_AT),
            *(plain_schedule(job.name, STREAM_AT) for job in of_streams),
        ],
    )


def _told(context: dg.OpExecutionContext, pruned: Pruned) -> None:
    """Say in the log of the run what was deleted."""
    for what, count in asdict(pruned).items():
        if count:
            context.log.info("deleted %s: %s", what, f"{count:,}")
