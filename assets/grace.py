"""Grace: what the stored arrivals say of the graces in force.

Here belongs keeping the curves, when they are to be made anew, and what the UI shows of the advice.
How candidates are judged is in ``transforms.grace.sweep``, the wording in ``advice`` beside it.
"""

from dataclasses import dataclass
from typing import Final

import dagster as dg
import polars as pl

from assets.arrivals import from_on, stored_arrivals
from assets.catalogue import Locks, asset_key, asset_spec, dep, pool_of
from assets.metadata import ROWS, Metadata
from assets.partitions import Axis
from assets.stores.lake import Lake, Slot
from assets.stores.tables import (
    FIRST_PARTITION,
    LAST_PARTITION,
    WHOLE,
    stored_schema,
    unit_of,
)
from transforms.grace.advice import Advice
from transforms.grace.report import HEADER, Report, cells, report, shown
from transforms.grace.sweep import BEHIND_FRACTION, GRACE_US
from transforms.schemas import GRACE_ADVICE, PROFILE, STAGED_EVENTS, STAGED_SOURCES
from transforms.spec import StreamSpec

DESCRIPTION: Final = "What other graces would have meant for the arrivals, and which one to choose."
_BAR: Final = 30


@dataclass(frozen=True)
class Advised:
    """The advice, and the arrival partitions that it was read off, oldest first."""

    report: Report
    partitions: tuple[str, ...]

    def as_table(self) -> pl.DataFrame:
        """Return the curves as they are kept."""
        first, last = self.partitions[0], self.partitions[-1]
        return self.report.as_table().with_columns(
            pl.lit(first).alias(FIRST_PARTITION), pl.lit(last).alias(LAST_PARTITION)
        )

    def figures(self) -> Metadata:
        """Return what the UI shows: advice and curve of each profile, and what is at stake."""
        advices = self.report.advices
        warnings = [f"{advice.profile}: {text}" for advice in advices for text in advice.warnings]
        return {
            ROWS: sum(advice.curve.height for advice in advices),
            "arrivals": f"{self.partitions[0]} to {self.partitions[-1]}",
            "warnings": dg.MetadataValue.json(warnings),
            **{
                f"profile_{advice.profile}": dg.MetadataValue.md(as_markdown(advice))
                for advice in advices
            },
        }


def advise_on_grace(spec: StreamSpec, lake: Lake, axis: Axis) -> Advised:
    """Sweep the newest arrivals and keep the curves in place of those before."""
    arrivals = stored_arrivals(spec, lake, axis)
    found = Advised(report(spec, arrivals.log, until_us=arrivals.until_us), arrivals.partitions)
    lake.overwrite(spec.name, GRACE_ADVICE, Slot(WHOLE), found.as_table())
    return found


def is_due(spec: StreamSpec, lake: Lake, axis: Axis) -> bool:
    """Whether the advice is missing, of other graces than those in force, or of too few rows.

    Too few: half as many have come since as it looked at. So all advice that a stream is ever given
    looks at each of its rows a few times, however often the stream is run.
    """
    unit = unit_of(lake, spec, STAGED_SOURCES)
    complete = axis.in_order(unit.partitions(STAGED_SOURCES))
    if not complete:
        return False
    if lake.other_columns(spec.name, GRACE_ADVICE, stored_schema(spec, GRACE_ADVICE)):
        return True  # another version of us has made it
    kept = unit.read(GRACE_ADVICE)
    if not kept.height or _in_force(kept) != _graces(spec, kept):
        return True
    rows = unit.rows(STAGED_EVENTS)
    first, last = (kept[name][0] for name in (FIRST_PARTITION, LAST_PARTITION))
    looked_at = from_on(axis, complete, first)
    since = sum(rows.get(key, 0) for key in looked_at if axis.position(key) > axis.position(last))
    return 3 * since >= sum(rows.get(key, 0) for key in looked_at)


def _in_force(kept: pl.DataFrame) -> dict[str, int]:
    """The graces that were in force when the curves were made."""
    return dict(kept.filter("is_in_force").select(PROFILE, GRACE_US).iter_rows())


def _graces(spec: StreamSpec, kept: pl.DataFrame) -> dict[str, int]:
    """The graces that are in force now, of the profiles with a curve."""
    named = spec.profiles.named
    return {name: named[name].grace_us for name in kept[PROFILE].unique() if name in named}


def as_markdown(advice: Advice) -> str:
    """Return the advice in words, then the curve; the bars are the rows left behind."""
    points = shown(advice)
    most = max((point[BEHIND_FRACTION] for point in points), default=0.0) or 1.0
    lines = [f"* {text}" for text in (*advice.words, *advice.warnings)]
    lines += [
        "",
        f"| {' | '.join((*HEADER[:-1], 'which', 'rows behind'))} |",
        f"|{' --- |' * (len(HEADER) + 1)}",
    ]
    for point in points:
        bar = "#" * round(_BAR * point[BEHIND_FRACTION] / most)
        lines.append(f"| {' | '.join((*cells(advice, point), bar))} |")
    return "\n".join(lines)


def grace_assets(spec: StreamSpec, axis: Axis) -> dg.AssetsDefinition:
    """Return the asset ``grace.advice`` of a stream; it has no partitions."""
    described = asset_spec(
        spec, GRACE_ADVICE, DESCRIPTION, [dep(spec, STAGED_EVENTS, dg.AllPartitionMapping())]
    )

    @dg.multi_asset(name=f"{spec.name}__grace", specs=[described], pool=pool_of(spec))
    def grace(
        lake: dg.ResourceParam[Lake], locks: dg.ResourceParam[Locks]
    ) -> dg.MaterializeResult[None]:
        with locks.of(spec.staged_as)():
            found = advise_on_grace(spec, lake, axis)
        return dg.MaterializeResult(
            asset_key=asset_key(spec, GRACE_ADVICE), metadata=found.figures()
        )

    return grace
