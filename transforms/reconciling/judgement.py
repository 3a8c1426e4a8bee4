"""Every window judged: what it should count today against what was last said of it.

Here belongs the set logic of reconciliation, in DuckDB SQL over registered frames: it compares
digests and revisions, and never touches a statistic. What follows from a judgement is in
``reconcile`` and ``outcomes``.
"""
# ruff: noqa: S608 (the texts put together are our own, values travel in frames)

from typing import Final

import duckdb
import polars as pl

from transforms.digest import HASH_NAME, LANE_0, LANE_1, LANE_DIGITS
from transforms.schemas import (
    ARRIVAL_US,
    CLOSED,
    EVENT_COUNT,
    FLUSH,
    INPUT_DIGEST,
    KEY,
    KNOWN_AT_US,
    LATE_ROWS,
    REASON,
    REFUSED_AT_US,
    RESTAGED,
    REVISION,
    WATERMARK_US,
    WINDOW,
    WINDOW_END_US,
    WINDOW_START_US,
    WITHDRAWN,
)

# What a window needs.
CHANGE: Final = "change"
PUBLISH: Final = "publish"  # a revision with the rows of today
WITHDRAW: Final = "withdraw"  # a tombstone
# Whether the window is over: W has reached its end, or a flush published what was open.
IS_DUE: Final = "is_due"

# What is looked at of a row in a window, beside the window.
WINDOW_ROW_COLUMNS: Final = (ARRIVAL_US, REFUSED_AT_US, LANE_0, LANE_1)
_WINDOW_COLUMNS: Final = (WINDOW, KEY, WINDOW_START_US, WINDOW_END_US)
_REVISION_COLUMNS: Final = (REVISION, EVENT_COUNT, INPUT_DIGEST, KNOWN_AT_US)


def _digest(only: str = "true") -> str:
    """The text form of the digest of the rows that satisfy a condition, as ``DigestSum`` has it."""
    sums = ", ".join(
        f"format('{{:0{LANE_DIGITS}x}}', coalesce(sum({lane}) filter ({only}), 0::hugeint))"
        for lane in (LANE_0, LANE_1)
    )
    return f"concat_ws(':', '{HASH_NAME}', count(*) filter ({only}), {sums})"


# A late row is one that came when this window was closed; the first publication is without it.
_IN_TIME: Final = "r.refused_at_us is null or r.window_end_us > r.refused_at_us"
_KNOWN: Final = "r.arrival_us <= d.known_at_us"
_WINDOW: Final = '"window", key, window_start_us'

_JUDGE: Final = f"""
with truth as (
    select {_WINDOW}, any_value(window_end_us) as window_end_us, {_digest()} as digest
    from window_rows group by {_WINDOW}
), both_sides as (
    select {_WINDOW}, coalesce(t.window_end_us, c.window_end_us) as window_end_us, t.digest,
        c.input_digest, c.revision, c.event_count, c.known_at_us
    from truth as t full join current as c using ({_WINDOW})
), judged as materialized (
    select b.*, coalesce(b.window_end_us <= w.watermark_us, false) as is_closed,
        is_closed or $flushed as is_due,
        case
            when is_due and digest is not null
                then case when digest is distinct from input_digest then '{PUBLISH}' end
            when event_count > 0 then '{WITHDRAW}'
        end as change
    from both_sides as b left join watermarks as w using (key)
), causes as (
    select {_WINDOW}, count(*) filter ({_IN_TIME}) as rows_in_time, {_digest(_IN_TIME)} as in_time,
        case when any_value(d.event_count) > 0 then {_digest(_KNOWN)} end as known
    from window_rows as r join judged as d using ({_WINDOW})
    where d.change = '{PUBLISH}' group by {_WINDOW}
)
select {_WINDOW}, window_end_us, is_due, change, coalesce(revision + 1, 0) as revision,
    case
        when change = '{WITHDRAW}' and is_due then '{WITHDRAWN}'
        when change = '{WITHDRAW}' then '{RESTAGED}'
        when change is null then null
        when revision is null and rows_in_time = 0 then '{LATE_ROWS}'
        when revision is null and is_closed then '{CLOSED}'
        when revision is null then '{FLUSH}'
        when input_digest in (in_time, known) then '{LATE_ROWS}'
        else '{RESTAGED}'
    end as reason
from judged left join causes using ({_WINDOW})
order by {_WINDOW}
"""


def judge(
    window_rows: pl.DataFrame,
    current: pl.DataFrame,
    watermarks: pl.DataFrame,
    *,
    flushed: bool = False,
) -> pl.DataFrame:
    """Return a row for every window that has rows or a revision: is it due, what does it need.

    ``window_rows`` are rows x windows with ``WINDOW_ROW_COLUMNS``, ``current`` the newest revisions
    of the same windows. The result has the window, ``is_due``, ``change`` (null: nothing), and for
    a change its ``revision`` and ``reason``; it is sorted by window, key, start.
    """
    with duckdb.connect() as connection:
        # A bar of its own would stand between the lines of a result.
        connection.execute("set enable_progress_bar = false")
        connection.register(
            "window_rows", window_rows.select(*_WINDOW_COLUMNS, *WINDOW_ROW_COLUMNS)
        )
        connection.register("current", current.select(*_WINDOW_COLUMNS, *_REVISION_COLUMNS))
        connection.register("watermarks", watermarks.select(KEY, WATERMARK_US))
        judged: pl.DataFrame = connection.sql(_JUDGE, params={"flushed": flushed}).pl()
    return judged.select(
        *(*_WINDOW_COLUMNS, IS_DUE, CHANGE),
        pl.col(REVISION).cast(pl.Int64),
        REASON,
    )
