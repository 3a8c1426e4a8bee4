"""Lateness: how late the rows of a stream come, as a whole, by profile and by key.

Here belongs keeping the profile and what the UI shows of it. How it is computed is in
``transforms.lateness.profile``.
"""

from typing import Final

import dagster as dg
import polars as pl

from assets.arrivals import stored_arrivals
from assets.catalogue import Locks, asset_key, asset_spec, dep, pool_of
from assets.metadata import ROWS, Metadata
from assets.partitions import Axis
from assets.stores.lake import Lake, Slot
from assets.stores.tables import WHOLE
from transforms.grace.advice import percent, plain
from transforms.lateness.hints import hints
from transforms.lateness.profile import LEVEL, NAME, bucket_ends_us, lateness_profile
from transforms.schemas import KEY, LATENESS_PROFILE, PROFILE, STAGED_EVENTS
from transforms.spec import StreamSpec

DESCRIPTION: Final = "How late rows come, by stream, profile and key: links, clocks, deliveries."
_BAR: Final = 40
_HINTS: Final = 50


def profile_lateness(spec: StreamSpec, lake: Lake, axis: Axis) -> pl.DataFrame:
    """Profile the newest arrivals and keep the table in place of the one before."""
    arrivals = stored_arrivals(spec, lake, axis)
    table = lateness_profile(arrivals.log, tuple(spec.profiles.named))
    lake.overwrite(spec.name, LATENESS_PROFILE, Slot(WHOLE), table)
    return table


def figures(table: pl.DataFrame) -> Metadata:
    """Return what the UI shows: the profiles, a histogram of delays, the keys that stand out."""
    return {
        ROWS: table.height,
        "profiles": dg.MetadataValue.md(profiles_as_markdown(table)),
        "delays": dg.MetadataValue.md(histogram_as_markdown(table)),
        "keys_to_look_at": dg.MetadataValue.md(hints_as_markdown(table)),
    }


def profiles_as_markdown(table: pl.DataFrame) -> str:
    """Return a line for each profile."""
    lines = [
        "| profile | rows | behind | delay p50 | p99 | max |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for row in table.filter(pl.col(LEVEL) == PROFILE).iter_rows(named=True):
        delays = (row[f"delay_{name}_us"] for name in ("p50", "p99", "max"))
        behind = percent(row["behind_rows"] / max(row["rows"], 1))
        told = ["-" if delay is None else plain(delay) for delay in delays]
        lines.append(f"| {row[NAME]} | {row['rows']:,} | {behind} | {' | '.join(told)} |")
    return "\n".join(lines)


def hints_as_markdown(table: pl.DataFrame) -> str:
    """Return what is odd about keys, a line each."""
    found = [f"* {hint.words}" for hint in hints(table)]
    more = [f"* and {len(found) - _HINTS:,} more"] if len(found) > _HINTS else []
    return "\n".join([*found[:_HINTS], *more]) or "none"


def histogram_as_markdown(table: pl.DataFrame) -> str:
    """Return the delays of the whole stream as bars, a bucket a line."""
    counts = table.filter(pl.col(LEVEL) != KEY)["delay_histogram"].drop_nulls().head(1).to_list()
    if not counts:
        return "no rows"
    most = max(counts[0])
    bars = (
        f"{'<= ' + plain(end):>10} {'#' * -(-_BAR * count // most)} {count:,}"
        for end, count in zip(bucket_ends_us(), counts[0], strict=True)
        if count
    )
    return "\n".join(["```", *bars, "```"])


def lateness_assets(spec: StreamSpec, axis: Axis) -> dg.AssetsDefinition:
    """Return the asset ``lateness_profile`` of a stream; it has no partitions."""
    described = asset_spec(
        spec, LATENESS_PROFILE, DESCRIPTION, [dep(spec, STAGED_EVENTS, dg.AllPartitionMapping())]
    )

    @dg.multi_asset(name=f"{spec.name}__lateness", specs=[described], pool=pool_of(spec))
    def lateness(
        lake: dg.ResourceParam[Lake], locks: dg.ResourceParam[Locks]
    ) -> dg.MaterializeResult[None]:
        with locks.of(spec.staged_as)():
            table = profile_lateness(spec, lake, axis)
        return dg.MaterializeResult(
            asset_key=asset_key(spec, LATENESS_PROFILE), metadata=figures(table)
        )

    return lateness
