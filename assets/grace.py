"""Grace: what the stored arrivals say of the graces in force.

Here belongs keeping the curves and what the UI shows of the advice. How candidates are judged is in
``transforms.grace``, the wording in ``transforms.grace_advice``.
"""

from typing import Final

import dagster as dg

from assets.arrivals import stored_arrivals
from assets.catalogue import Locks, asset_key, asset_spec, dep, pool_of
from assets.metadata import ROWS, Metadata
from assets.partitions import Axis
from assets.stores.lake import Lake, Slot
from assets.stores.tables import WHOLE
from transforms.grace import BEHIND_FRACTION
from transforms.grace_advice import Advice
from transforms.grace_report import HEADER, Report, cells, report, shown
from transforms.schemas import GRACE_ADVICE, STAGED_EVENTS
from transforms.spec import StreamSpec

DESCRIPTION: Final = "What other graces would have meant for the arrivals, and which one to choose."
_BAR: Final = 30


def advise_on_grace(spec: StreamSpec, lake: Lake, axis: Axis) -> Report:
    """Sweep the stored arrivals and keep the curves in place of those before."""
    arrivals = stored_arrivals(spec, lake, axis)
    found = report(spec, arrivals.log, until_us=arrivals.until_us)
    lake.replace(spec.name, GRACE_ADVICE, {Slot(WHOLE): found.as_table()})
    return found


def figures(found: Report) -> Metadata:
    """Return what the UI shows: the advice and the curve of each profile, and what is at stake."""
    shown_by_profile: Metadata = {
        f"profile_{advice.profile}": dg.MetadataValue.md(as_markdown(advice))
        for advice in found.advices
    }
    warnings = [f"{advice.profile}: {text}" for advice in found.advices for text in advice.warnings]
    rows = sum(advice.curve.height for advice in found.advices)
    return {ROWS: rows, "warnings": dg.MetadataValue.json(warnings), **shown_by_profile}


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
    """Return the asset ``grace_advice`` of a stream; it has no partitions."""
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
            asset_key=asset_key(spec, GRACE_ADVICE), metadata=figures(found)
        )

    return grace
