"""Evidence of reorder: released rows are in order and due, refused rows were refused for cause."""
# ruff: noqa: S608 (identifiers are quoted)

import polars as pl

from expectations.evidence.sums import odd_rows, ordered_by_key
from expectations.evidence.tables import (
    counts,
    evidence,
    instant,
    profile_of,
    register_profiles,
)
from expectations.stored import Opened, literal
from transforms.schemas import DEAD_LETTER_REASONS


def order(store: Opened) -> pl.DataFrame:
    """Find released rows that stand after one they should precede, in the order of the file."""
    first = instant("min(event_us)")
    return evidence(
        store,
        f"""with odd as (
          select partition, key, count(*) as wrong,
            'the first out of place is of ' || {first} as said
          from {odd_rows(store)} where wrong group by all)
        select partition, key, rows, coalesce(wrong, 0), said
        from {ordered_by_key(store)} left join odd using (partition, key)""",
    )


def released(store: Opened) -> pl.DataFrame:
    """Find released rows that the watermark had passed before, or has not passed now.

    The first and the last of a key say whether there are any.
    """
    early = "w.watermark_us is null or event_us >= w.watermark_us"
    late = "coalesce(event_us < before, false)"
    return evidence(
        store,
        f"""with suspects as (
          select s.partition, s.key, w.watermark_us, b.watermark_us as before
          from {ordered_by_key(store)} s left join watermarks w using (partition, key)
          left join watermarks_before b using (partition, key)
          where w.watermark_us is null or last_us >= w.watermark_us or first_us < before
        ), found as (
          select partition, key, count(*) filter ({early} or {late}) as wrong,
            count(*) filter ({early}) || ' too early, ' || count(*) filter ({late}) || ' too late'
              as said
          from ordered join suspects w using (partition, key) group by all
        )
        select partition, key, rows, coalesce(wrong, 0), said
        from {ordered_by_key(store)} left join found using (partition, key)""",
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
