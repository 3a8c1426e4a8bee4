"""What schedules and sensors have in common: a look at a stream, and how a run is asked for.

Here belongs nothing that decides which partitions are run.
"""

from collections.abc import Sequence
from typing import Final

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from assets.catalogue import Landing, Locks
from assets.outlook import Outlook
from assets.stores.lake import Lake
from assets.stores.lock import LockHeld
from orchestration.jobs import arrivals_job
from orchestration.ranges import range_tags
from transforms.spec import StreamSpec

# Why a run was asked for, in words; shown with the run.
WHY: Final = "lowwater/why"
_LONGEST_TAG: Final = 250


def unfinished_run(instance: dg.DagsterInstance, job: str) -> dg.DagsterRun | None:
    """Return a run of a job that waits or is under way, if there is one."""
    runs = instance.get_runs(
        dg.RunsFilter(job_name=job, statuses=list(NOT_FINISHED_STATUSES)), limit=1
    )
    return runs[0] if runs else None


def look(
    instance: dg.DagsterInstance, spec: StreamSpec, lake: Lake, landing: Landing, locks: Locks
) -> Outlook | dg.SkipReason:
    """Look at the sources of a stream, or say why not now: somebody takes rows in or writes."""
    run = unfinished_run(instance, arrivals_job(spec.name))
    if run is not None:
        return dg.SkipReason(f"run {run.run_id} is taking rows in; looks again after it")
    try:
        return Outlook.of(spec, lake, landing, locks)
    except LockHeld as held:
        return dg.SkipReason(str(held))


def request(job: str, partitions: Sequence[str], key: str, why: str) -> dg.RunRequest:
    """Ask for a run of a job over a range of partitions."""
    return dg.RunRequest(
        run_key=key,
        job_name=job,
        tags={**range_tags(partitions[0], partitions[-1]), WHY: why[:_LONGEST_TAG]},
    )


def named(first: str, last: str) -> str:
    """Return a range of partitions in words."""
    return first if first == last else f"{first} to {last}"
