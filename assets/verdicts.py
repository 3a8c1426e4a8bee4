"""How a check tells its verdict on each partition of a run, however many the run takes.

Dagster records one evaluation for a check in a run, and in a run over a range of partitions it
belongs to none of them. Here belongs the way around: an evaluation for each partition, in few
transactions, and one over all, which blocks what comes after. What is judged, and by which rule,
belongs to the stages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.events import (
    DagsterEvent,
    DagsterEventBatchMetadata,
    DagsterEventType,
)

from assets.metadata import Metadata

# A log of events that has this attribute, and says True, takes batches of any kind of them.
ANY_BATCH: Final = "takes_any_batch"


@dataclass(frozen=True)
class Verdict:
    """What a check says of one partition; the description says what is wrong, if anything is.

    A failure of severity WARN is news, and blocks nothing.
    """

    partition: str
    passed: bool
    metadata: Metadata = field(default_factory=dict)
    description: str = ""
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
    blocking: bool = True


# What was judged: the newest materialization of each partition.
Judged = Mapping[str, AssetCheckEvaluationTargetMaterializationData]


def judged(
    context: dg.AssetCheckExecutionContext, asset: dg.AssetKey, partitions: Sequence[str]
) -> Judged:
    """Return the materializations that a check of these partitions judges.

    Dagster shows a verdict on a partition as long as it is about its newest materialization.
    """
    instance, made = context.instance, dg.DagsterEventType.ASSET_MATERIALIZATION
    newest = instance.get_latest_storage_id_by_partition(asset, made, set(partitions))
    if not newest:
        return {}
    chosen = dg.AssetRecordsFilter(asset, storage_ids=list(newest.values()))
    records = instance.fetch_materializations(chosen, limit=len(newest)).records
    return {
        str(found.partition_key): AssetCheckEvaluationTargetMaterializationData(
            storage_id=found.storage_id, run_id=found.run_id, timestamp=found.timestamp
        )
        for found in records
    }


def record(
    context: dg.AssetCheckExecutionContext,
    check: dg.AssetCheckKey,
    verdicts: Sequence[Verdict],
    judged: Judged,
) -> None:
    """Report evaluations as ``report_runless_asset_event`` does, but of this run.

    Those of the run take the place of what it had planned for the partitions. They go to the log as
    one batch where it takes them so; that of PostgreSQL would say on stderr that it does not.
    """
    in_batches = getattr(context.instance.event_log_storage, ANY_BATCH, False)
    for number, verdict in enumerate(verdicts, start=1):
        event = DagsterEvent(
            event_type_value=DagsterEventType.ASSET_CHECK_EVALUATION.value,
            event_specific_data=_evaluation(check, verdict, judged.get(verdict.partition)),
            job_name=context.run.job_name,
        )
        is_end = not in_batches or number == len(verdicts)
        batch = DagsterEventBatchMetadata(str(check), is_end=is_end)
        context.instance.report_dagster_event(event, context.run.run_id, batch_metadata=batch)


def _evaluation(
    check: dg.AssetCheckKey,
    verdict: Verdict,
    about: AssetCheckEvaluationTargetMaterializationData | None,
) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=verdict.passed,
        metadata=verdict.metadata,
        description=verdict.description,
        severity=verdict.severity,
        blocking=verdict.blocking,
        partition=verdict.partition,
        target_materialization_data=about,
    )
