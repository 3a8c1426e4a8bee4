"""How a check tells its verdict on each partition of a run, however many the run takes.

Dagster records one evaluation for a check in a run, and in a run over a range of partitions it
belongs to none of them. Here belongs the way around: an evaluation for each partition, in few
transactions, and one over all, which blocks what comes after. What is judged, and by which rule,
belongs to the stages.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import dagster as dg
from dagster._core.events import (
    DagsterEvent,
    DagsterEventBatchMetadata,
    DagsterEventType,
)

from assets.metadata import Metadata
from assets.partitions import Axis
from assets.stores.lake import Lake

# So many partitions that failed are named.
_NAMED: Final = 10
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


def blocking_check(
    check: dg.AssetCheckKey,
    claim: str,
    axis: Axis,
    judge: Callable[[Lake, Sequence[str]], Iterable[Verdict]],
) -> dg.AssetChecksDefinition:
    """Return a check that blocks what comes after; ``judge`` gives a verdict on each partition."""

    @dg.asset_check(
        asset=check.asset_key,
        name=check.name,
        description=claim,
        blocking=True,
        partitions_def=axis.definition,
    )
    def judged(
        context: dg.AssetCheckExecutionContext, lake: dg.ResourceParam[Lake]
    ) -> dg.AssetCheckResult:
        return tell(context, check, list(judge(lake, context.partition_keys)))

    return judged


def tell(
    context: dg.AssetCheckExecutionContext, check: dg.AssetCheckKey, verdicts: Sequence[Verdict]
) -> dg.AssetCheckResult:
    """Record a verdict for each partition of a run; returns the one of the whole run."""
    if context.has_partition_key:
        [verdict] = verdicts
        return dg.AssetCheckResult(
            passed=verdict.passed,
            asset_key=check.asset_key,
            check_name=check.name,
            metadata=verdict.metadata,
            severity=verdict.severity,
            description=verdict.description,
        )
    record(context, check, verdicts)
    wrong = [verdict for verdict in verdicts if not verdict.passed]
    return dg.AssetCheckResult(
        passed=not wrong,
        metadata={"partitions": len(verdicts), "partitions_failed": len(wrong)},
        description=_summary(wrong),
    )


def record(
    context: dg.AssetCheckExecutionContext, check: dg.AssetCheckKey, verdicts: Sequence[Verdict]
) -> None:
    """Report evaluations as ``report_runless_asset_event`` does, but of this run.

    Those of the run take the place of what it had planned for the partitions. They go to the log as
    one batch where it takes them so; that of PostgreSQL would say on stderr that it does not.
    """
    in_batches = getattr(context.instance.event_log_storage, ANY_BATCH, False)
    for number, verdict in enumerate(verdicts, start=1):
        event = DagsterEvent(
            event_type_value=DagsterEventType.ASSET_CHECK_EVALUATION.value,
            event_specific_data=_evaluation(check, verdict),
            job_name=context.run.job_name,
        )
        is_end = not in_batches or number == len(verdicts)
        batch = DagsterEventBatchMetadata(str(check), is_end=is_end)
        context.instance.report_dagster_event(event, context.run.run_id, batch_metadata=batch)


def _evaluation(check: dg.AssetCheckKey, verdict: Verdict) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=verdict.passed,
        metadata=verdict.metadata,
        description=verdict.description,
        severity=verdict.severity,
        blocking=verdict.blocking,
        partition=verdict.partition,
    )


def _summary(wrong: Sequence[Verdict]) -> str:
    named = [f"{verdict.partition}: {verdict.description}" for verdict in wrong[:_NAMED]]
    more = len(wrong) - len(named)
    return "; ".join([*named, f"and {more} partitions more"] if more else named)
