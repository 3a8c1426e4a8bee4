"""The report: the quality page of a stream and its Data Docs, written by one asset.

Here belongs what the report is made from and where it goes. What stands on it is in
``expectations.report``.
"""

from typing import Final

import dagster as dg

from assets.catalogue import OWNERS, asset_key, dep, pool_of
from assets.partitions import Axis
from assets.quality import Reports
from assets.stored import stored_of
from assets.stores.lake import Lake
from expectations.report.report import build_report
from transforms.schemas import (
    AMENDED_WINDOWS,
    ORDERED_EVENTS,
    PUBLISHED_WINDOWS,
    WATERMARKS,
    WINDOW_HISTORY,
)
from transforms.spec import StreamSpec

QUALITY_REPORT: Final = "quality_report"
DESCRIPTION: Final = "The state of the stream in words and pictures: one page that opens offline."


def report_asset(spec: StreamSpec, arrivals: Axis, events: Axis) -> dg.AssetsDefinition:
    """Return the asset ``quality_report`` of a stream; it has no partitions."""
    everything = dg.AllPartitionMapping()
    tables = (ORDERED_EVENTS, PUBLISHED_WINDOWS, AMENDED_WINDOWS)

    @dg.multi_asset(
        name=f"{spec.name}__report",
        specs=[
            dg.AssetSpec(
                asset_key(spec, QUALITY_REPORT),
                deps=[dep(spec, table, everything) for table in tables],
                description=DESCRIPTION,
                group_name=spec.name,
                owners=OWNERS,
                tags={"stream": spec.name},
                kinds={"html", "duckdb"},
            )
        ],
        pool=pool_of(spec),
    )
    def report(
        lake: dg.ResourceParam[Lake], reports: dg.ResourceParam[Reports]
    ) -> dg.MaterializeResult[None]:
        of_arrivals = stored_of(lake, spec, arrivals, lake.partitions(spec.name, WATERMARKS))
        of_events = stored_of(lake, spec, events, lake.partitions(spec.name, WINDOW_HISTORY))
        file = reports.page(spec.name)
        state = build_report(of_arrivals, of_events, reports.of(spec.name), file)
        return dg.MaterializeResult(
            asset_key=asset_key(spec, QUALITY_REPORT),
            metadata={
                "state": dg.MetadataValue.text(state.headline),
                "page": dg.MetadataValue.url(reports.link(spec.name)),
                "errors": len(state.errors),
                "warnings": len(state.warnings),
            },
        )

    return report
