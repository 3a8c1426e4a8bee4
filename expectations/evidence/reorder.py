"""Evidence of reorder: released rows are in order and due, refused rows were refused for cause."""
# ruff: noqa: S608 (identifiers are quoted)

import polars as pl

from expectations.evidence.tables import (
    EVIDENCE,
    counts,
    evidence,
    instant,
    profile_of,
    register_profiles,
)
from expectations.stored import Opened, StoredFile, literal
from transforms.schemas import DEAD_LETTER_REASONS, ORDERED_EVENTS

_ORDER = ("key", "event", "seq")


def order(store: Opened) -> pl.DataFrame:
    """Find released rows that stand after one they should precede, in the order of the file."""
    keys = {partition.key for partition in store.stored.partitions}
    files = [file for file in store.stored.of(ORDERED_EVENTS, keys) if file.rows]
    frames = pl.collect_all([_out_of_place(store, file) for file in files])
    return pl.concat([EVIDENCE.to_frame(), *frames])


def _out_of_place(store: Opened, file: StoredFile) -> pl.LazyFrame:
    """Compare each row with the one before it; the rows of a shard are one file."""
    rows = store.scan(file).select("partition", *_ORDER)
    key, event, seq = (pl.col(name) for name in _ORDER)
    before_key, before_event, before_seq = (column.shift() for column in (key, event, seq))
    falls = (event < before_event) | ((event == before_event) & (seq <= before_seq))
    wrong = ((key < before_key) | ((key == before_key) & falls)).fill_null(value=False)
    return (
        rows.with_columns(wrong.alias("_wrong"))
        .group_by("partition", key.alias("subject"))
        .agg(
            pl.len().cast(pl.Int64).alias("examined"),
            pl.col("_wrong").sum().cast(pl.Int64).alias("violations"),
            event.filter(pl.col("_wrong")).first().alias("_first"),
        )
        .select(
            *("partition", "subject", "examined", "violations"),
            pl.format(
                "the first out of place is of {}",
                pl.col("_first").dt.to_string("%Y-%m-%d %H:%M:%S%.6fZ"),
            ).alias("detail"),
        )
    )


def released(store: Opened) -> pl.DataFrame:
    """Find released rows that the watermark had passed before, or has not passed now."""
    early = "w.watermark_us is null or event_us >= w.watermark_us"
    late = "event_us < b.watermark_us"
    said = f"count(*) filter ({early}) || ' too early, ' || count(*) filter ({late}) || ' too late'"
    return evidence(
        store,
        f"""select partition, key, {counts(f"({early}) or coalesce({late}, false)", said)}
        from ordered left join watermarks w using (partition, key)
        left join watermarks_before b using (partition, key) group by all""",
    )


def held(store: Opened) -> pl.DataFrame:
    """Find held rows that the watermark has passed."""
    due = "event_us < w.watermark_us"
    said = f"'the oldest is of ' || {instant('min(event_us)')}"
    return evidence(
        store,
        f"select partition, key, {counts(due, said)}"
        " from held left join watermarks w using (partition, key) group by all",
    )


def reasons(store: Opened) -> pl.DataFrame:
    """Find dead letters of an unknown reason, or with numbers of windows that cannot be."""
    known = ", ".join(literal(reason) for reason in DEAD_LETTER_REASONS)
    wrong = (
        f"reason is null or reason not in ({known}) or windows_total is null"
        " or windows_missed is null or windows_missed not between 0 and windows_total"
    )
    said = f"'reasons: ' || string_agg(distinct reason, ', ') filter ({wrong})"
    return evidence(store, f"select partition, key, {counts(wrong, said)} from dead group by all")


# What a dead letter must say for its reason to be true. `d` is the row, `p` its profile.
_CAUSES = """case d.reason
  when 'behind_watermark' then d.event_us < d.watermark_us and d.windows_missed = 0
  when 'late_closed_window' then d.event_us < d.watermark_us and d.windows_missed > 0
  when 'buffer_overflow' then coalesce(d.event_us >= d.watermark_us, true)
  when 'future_timestamp' then d.event_us::hugeint > d.arrival_us::hugeint + p.skew_us
  when 'invalid_value' then d.unreadable is not null
  else true end"""
# Its watermark is one that the key had in the partition, its lateness the distance to it.
_MEASURES = """(d.watermark_us is null or (
  d.watermark_us <= w.watermark_us and d.watermark_us >= coalesce(b.watermark_us, d.watermark_us)
  and (d.lateness_us = d.watermark_us::hugeint - d.event_us or abs(d.lateness_us) = 1::bigint << 62)
))"""


def causes(store: Opened) -> pl.DataFrame:
    """Find dead letters whose own numbers contradict their reason."""
    register_profiles(store)
    wrong = f"not coalesce({_CAUSES}, false) or not coalesce({_MEASURES}, false)"
    said = f"string_agg(distinct d.reason, ', ') filter ({wrong})"
    return evidence(
        store,
        f"""select d.partition, d.key, {counts(wrong, said)} from dead d
        left join profiles p on p.profile = {profile_of(store.spec, "d")}
        left join watermarks w on w.partition = d.partition and w.key = d.key
        left join watermarks_before b on b.partition = d.partition and b.key = d.key
        group by all""",
    )
