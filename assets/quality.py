"""The invariants of a stream as asset checks, and how verdicts reach Dagster.

Here belongs which checks run together, what blocks, and what the UI shows of a verdict. What must
hold is in ``expectations.invariants``; how it is judged in ``expectations.run``.

How each partition of a run over a range gets its own verdict is in ``verdicts``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

import dagster as dg
import polars as pl

from assets import verdicts as verdicts_in_dagster
from assets.catalogue import asset_key
from assets.history import Targets
from assets.partitions import Axis
from assets.stored import judged, stored_of
from assets.stores.lake import Lake
from assets.stores.targets.target import Starts
from assets.verdicts import record
from expectations.invariants import Invariant
from expectations.results import Verdict
from expectations.run import check
from expectations.suites.stages import STAGES
from transforms.spec import StreamSpec

PAGE: Final = "quality.html"
_STAGING: Final = "staging"
# The stage that looks at the target itself.
_RECONCILE: Final = "reconcile"
_SHOWN: Final = 10
_COLUMNS: Final = dg.TableSchema(
    columns=[
        dg.TableColumn("partition", "string"),
        dg.TableColumn("subject", "string"),
        dg.TableColumn("violations", "int"),
        dg.TableColumn("detail", "string"),
    ]
)


@dataclass(frozen=True)
class Reports:
    """The resource ``reports``: where verdicts and pages are kept.

    ``url`` is where the folder is served; empty: it is not.
    """

    folder: Path
    url: str = ""

    def of(self, stream: str) -> Path:
        """Return the folder of a stream."""
        return self.folder / stream

    def page(self, stream: str) -> Path:
        """Return the page of a stream, whether it is there or not."""
        return self.of(stream) / PAGE

    def link(self, stream: str) -> str:
        """Return what the UI links to: a page that is served opens from there, a file does not."""
        if self.url:
            return f"{self.url.rstrip('/')}/{quote(stream)}/{PAGE}"
        return self.page(stream).as_uri()


def staging_checks(spec: StreamSpec, arrivals: Axis) -> dg.AssetChecksDefinition:
    """Return the checks of what is staged; every track of the stream tells of them."""
    return _checks_of(spec, _STAGING, arrivals)


def quality_checks(
    spec: StreamSpec, arrivals: Axis, events: Axis
) -> list[dg.AssetChecksDefinition]:
    """Return the checks of what is computed from staged rows, one step for each stage."""
    return [
        _checks_of(spec, stage, events if invariants[0].axis == "event" else arrivals)
        for stage, invariants in STAGES.items()
        if stage != _STAGING
    ]


def _checks_of(spec: StreamSpec, stage: str, axis: Axis) -> dg.AssetChecksDefinition:
    specs = [_check_spec(spec, invariant, axis) for invariant in STAGES[stage]]

    @dg.multi_asset_check(name=f"{spec.name}__check_{stage}", specs=specs)
    def checks(
        context: dg.AssetCheckExecutionContext,
        lake: dg.ResourceParam[Lake],
        targets: dg.ResourceParam[Targets],
        reports: dg.ResourceParam[Reports],
    ) -> Iterable[dg.AssetCheckResult]:
        keys = context.partition_keys
        held = held_by_target(targets, spec, axis, keys) if stage == _RECONCILE else None
        stored = stored_of(lake, spec, axis, keys, held)
        names = [part.name for part in spec.computed]
        folders = [reports.of(name) for name in names]
        verdicts = check(stored, stage, folders, datetime.now(UTC), run_id=context.run.run_id)
        by_name: dict[str, list[Verdict]] = {invariant.name: [] for invariant in STAGES[stage]}
        for verdict in verdicts:
            by_name[verdict.invariant].append(verdict)
        teller = Teller(spec, reports.link(names[0]))
        for listed in by_name.values():
            yield teller.tell(context, listed)

    return checks


def held_by_target(
    targets: Targets, spec: StreamSpec, events: Axis, keys: Sequence[str]
) -> pl.DataFrame:
    """Return the windows that the target holds of event partitions, and of those between them."""
    parts = judged(events, keys)
    start_us = None if parts[0].is_first else parts[0].start_us
    with targets.of(spec) as target:
        return target.current(spec.name, Starts(start_us, parts[-1].end_us))


def _check_spec(spec: StreamSpec, invariant: Invariant, axis: Axis) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        invariant.name,
        asset=asset_key(spec, invariant.asset),
        description=f"{invariant.sentence} {invariant.why}",
        blocking=invariant.blocking,
        partitions_def=axis.definition,
        metadata={"remedy": invariant.what_to_do(spec, "P")},
    )


@dataclass(frozen=True)
class Teller:
    """Tells verdicts in the words of Dagster, with a link to the page of the stream."""

    spec: StreamSpec
    page: str
    _known: dict[dg.AssetKey, verdicts_in_dagster.Judged] = field(default_factory=dict)

    def tell(
        self, context: dg.AssetCheckExecutionContext, verdicts: Sequence[Verdict]
    ) -> dg.AssetCheckResult:
        """Record the verdict on each partition; returns the one on all, which blocks."""
        about = verdicts[0].about
        check = dg.AssetCheckKey(asset_key(self.spec, about.asset), about.name)
        if not context.has_partition_key:
            told = [self._of_partition(verdict) for verdict in verdicts]
            record(context, check, told, self._judged(context, check.asset_key, verdicts))
        return dg.AssetCheckResult(
            passed=all(verdict.passed for verdict in verdicts),
            check_name=check.name,
            asset_key=check.asset_key,
            severity=_severity(about),
            description=self._in_words(verdicts),
            metadata=self._metadata(verdicts),
        )

    def _judged(
        self,
        context: dg.AssetCheckExecutionContext,
        asset: dg.AssetKey,
        verdicts: Sequence[Verdict],
    ) -> verdicts_in_dagster.Judged:
        """What is judged of an asset is the same for all its checks in a run."""
        if asset not in self._known:
            partitions = [verdict.partition for verdict in verdicts]
            self._known[asset] = verdicts_in_dagster.judged(context, asset, partitions)
        return self._known[asset]

    def _of_partition(self, verdict: Verdict) -> verdicts_in_dagster.Verdict:
        return verdicts_in_dagster.Verdict(
            verdict.partition,
            verdict.passed,
            {**self._metadata([verdict])},
            self._in_words([verdict]),
            _severity(verdict.about),
            verdict.about.blocking,
        )

    def _in_words(self, verdicts: Sequence[Verdict]) -> str:
        """What was found where, and what to do about it."""
        failing = [verdict for verdict in verdicts if not verdict.passed]
        if not failing:
            return verdicts[0].words if len(verdicts) == 1 else verdicts[0].about.sentence
        named = [f"{verdict.partition}: {verdict.words}" for verdict in failing[:_SHOWN]]
        more = len(failing) - len(named)
        listed = "; ".join([*named, f"and {more:,} partitions more"] if more else named)
        remedy = failing[0].about.what_to_do(self.spec, failing[0].partition)
        return f"{listed}. {remedy}"

    def _metadata(self, verdicts: Sequence[Verdict]) -> dict[str, dg.MetadataValue]:
        figures: dict[str, dg.MetadataValue] = {
            "examined": dg.MetadataValue.int(sum(verdict.examined for verdict in verdicts)),
            "violations": dg.MetadataValue.int(sum(verdict.violations for verdict in verdicts)),
        }
        worst = _worst(verdicts)
        if worst:
            figures["worst"] = dg.MetadataValue.table(worst, _COLUMNS)
            figures["report"] = dg.MetadataValue.url(self.page)
        return figures


def _severity(invariant: Invariant) -> dg.AssetCheckSeverity:
    is_error = invariant.severity == "error"
    return dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN


def _worst(verdicts: Iterable[Verdict]) -> list[dg.TableRecord]:
    """The worst keys, windows or files of the partitions that fail."""
    faults = sorted(
        ((verdict.partition, fault) for verdict in verdicts for fault in verdict.worst),
        key=lambda found: -found[1].violations,
    )
    return [
        dg.TableRecord(
            {
                "partition": partition,
                "subject": fault.subject,
                "violations": fault.violations,
                "detail": fault.detail,
            }
        )
        for partition, fault in faults[:_SHOWN]
    ]
