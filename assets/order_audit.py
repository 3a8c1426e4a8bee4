"""The order audit: which orders an arrival partition kept, and what its keys cost.

Three orders are looked at. Of the source: event times in the order of arrival, which shows how
shuffled the rows came. Of publishing: when the batches of each lane were handed out, begun and
landed. Of the released stream: event times in the order of release, after all that was released
before. Pairs of one key (or lane) are what must be kept, and only in the last two; all other counts
are reported. Here belongs which rows are audited, and what is kept and told of it; the counting is
``transforms.order_audit``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import dagster as dg
import polars as pl

from assets.catalogue import (
    asset_spec,
    dep,
)
from assets.metadata import ROWS, Metadata, fraction
from assets.partitions import Axis
from assets.steps import Done, Stores, step
from assets.stores.lake import Lake, Slot
from assets.stores.lake_files import Span
from assets.stores.marks import require_mark
from assets.stores.tables import (
    BATCH,
    EFFECTIVE_KEYS,
    HEAVIEST_KEY,
    HEAVIEST_SHARE,
    INVERTED,
    KEYS,
    LANE,
    ORDER_OF,
    ORDERED_BY,
    PAIRS,
    REVISIONS,
    SAME_KEY_INVERTED,
    SAME_KEY_PAIRS,
    STAMPS,
    WORST_KEYS,
    frame_schema,
    unit_of,
)
from assets.stores.unit_of_work import UnitOfWork
from transforms.errors import LakeError
from transforms.order_audit import OrderAudit, audit_order, speed_up
from transforms.schemas import (
    ARRIVAL_US,
    EVENT_US,
    KEY,
    ORDER_AUDIT,
    ORDERED_EVENTS,
    PUBLICATION_STAMPS,
    PUBLISHED_WINDOWS,
    SEQ,
    STAGED_EVENTS,
    STORED_NAMES,
    WATERMARKS,
)
from transforms.spec import StreamSpec

DESCRIPTION: Final = (
    "Which orders were kept: inverted pairs, globally and of one key, and key skew."
)
# What is ordered.
SOURCE: Final = "source"
PUBLISHING: Final = "publishing"
RELEASED: Final = "released"
# How many workers the cost of skew is told for.
_WORKERS: Final = 4
_WORST: Final = 3
_EVER_US: Final = 2**63 - 1


@dataclass(frozen=True)
class Audited:
    """The orders of a partition, a row for each (the table ``order_audit``)."""

    partition: str
    orders: pl.DataFrame

    def figures(self) -> Metadata:
        """Return what the UI shows of the partition."""
        metadata: Metadata = {ROWS: self.orders.height}
        for order in self.orders.to_dicts():
            metadata |= _figures(order)
        return metadata | _skew(self.orders.row(0, named=True))


def _figures(order: Mapping[str, Any]) -> Metadata:
    name = f"{order[ORDER_OF]}_{order[ORDERED_BY]}"
    return {
        f"{name}_inverted": order[INVERTED],
        f"{name}_inverted_fraction": fraction(order[INVERTED], order[PAIRS]),
        f"{name}_same_key_inverted": order[SAME_KEY_INVERTED],
        f"{name}_same_key_inverted_fraction": fraction(
            order[SAME_KEY_INVERTED], order[SAME_KEY_PAIRS]
        ),
    }


def _skew(source: Mapping[str, Any]) -> Metadata:
    """How unevenly keys share the rows, and what that costs where a key is one worker's work."""
    share = source[HEAVIEST_SHARE]
    return {
        "keys": source[KEYS],
        "keys_effective": source[EFFECTIVE_KEYS],
        "key_heaviest": source[HEAVIEST_KEY],
        "key_heaviest_fraction": share,
        f"keyed_speed_up_of_{_WORKERS}_workers": speed_up(share, _WORKERS),
    }


def audit_orders(
    spec: StreamSpec, lake: Lake, axis: Axis, partitions: Sequence[str]
) -> Iterator[Audited]:
    """Audit partitions that were published; yields each of them when it is written."""
    with unit_of(lake, spec, ORDER_AUDIT) as unit:
        for table in (PUBLISHED_WINDOWS, WATERMARKS):
            unit.marks(table, partitions)
        for partition in partitions:
            mark = require_mark(unit, spec, PUBLISHED_WINDOWS, partition)
            if mark != require_mark(unit, spec, WATERMARKS, partition):
                raise LakeError(
                    f"{spec.name}: what partition {partition} published is older than its rows; "
                    f"run it again: lowwater run {spec.staged_as} --from {partition}"
                    f" --to {partition}"
                )
            orders = _orders(spec, unit, axis, partition)
            unit.replace(ORDER_AUDIT, Slot(partition), orders, str(mark))
            yield Audited(partition, orders)
            unit.finish()


def _orders(spec: StreamSpec, unit: UnitOfWork, axis: Axis, partition: str) -> pl.DataFrame:
    source = unit.read(STAGED_EVENTS, partitions=[partition]).sort(ARRIVAL_US, SEQ)
    stamps = unit.read(PUBLICATION_STAMPS, partitions=[partition]).sort(BATCH)
    released = _released(unit, axis, partition)
    lanes = audit_order(stamps, key=[LANE], order=STAMPS, weight=REVISIONS, worst=_WORST)
    audits = {
        SOURCE: audit_order(source, key=[KEY], order=[EVENT_US], worst=_WORST),
        PUBLISHING: lanes,
        RELEASED: audit_order(released, key=[KEY], order=[EVENT_US], worst=_WORST),
    }
    rows = [row for name, audit in audits.items() for row in _rows(name, audit)]
    return pl.DataFrame(rows, schema=frame_schema(spec, ORDER_AUDIT))


def _released(unit: UnitOfWork, axis: Axis, partition: str) -> pl.DataFrame:
    """Return the keys and event times that a partition released, in the order of release.

    Before them stands for each key the last time that earlier partitions released, where it may be
    later than one of these; so a pair across partitions is seen, and none is counted twice.
    """
    columns = [KEY, EVENT_US]
    rows = unit.read(ORDERED_EVENTS, partitions=[partition]).select(columns)
    if not rows.height:
        return rows
    later = Span(EVENT_US, int(rows[EVENT_US].to_numpy().min()) + 1, _EVER_US)
    earlier = frozenset(axis.up_to(partition)[:-1])
    ahead = unit.read(ORDERED_EVENTS, partitions=earlier, spans=[later]).select(columns)
    last = ahead.group_by(KEY).agg(pl.col(EVENT_US).max()).join(rows, on=KEY, how="semi").sort(KEY)
    return pl.concat([last, rows])


def _rows(order_of: str, audit: OrderAudit) -> Iterator[dict[str, Any]]:
    for column in audit.columns:
        yield {
            ORDER_OF: order_of,
            ORDERED_BY: STORED_NAMES.get(column.column, column.column),
            PAIRS: column.overall.pairs,
            INVERTED: column.overall.inverted,
            SAME_KEY_PAIRS: column.same_key.pairs,
            SAME_KEY_INVERTED: column.same_key.inverted,
            KEYS: audit.skew.keys,
            EFFECTIVE_KEYS: audit.skew.effective_keys,
            HEAVIEST_KEY: audit.skew.heaviest_key,
            HEAVIEST_SHARE: audit.skew.heaviest_share,
            WORST_KEYS: json.dumps([asdict(key) for key in column.worst_keys]),
        }


def order_audit_assets(spec: StreamSpec, axis: Axis) -> dg.AssetsDefinition:
    """Return the asset ``order_audit`` of a stream."""
    tables = (STAGED_EVENTS, ORDERED_EVENTS, PUBLISHED_WINDOWS)

    def work(stores: Stores, partitions: Sequence[str]) -> Iterator[Done]:
        for audited in audit_orders(spec, stores.lake, axis, partitions):
            yield audited.partition, {ORDER_AUDIT: audited.figures()}

    specs = [asset_spec(spec, ORDER_AUDIT, DESCRIPTION, [dep(spec, table) for table in tables])]
    return step(spec, "order_audit", axis, specs, work)
