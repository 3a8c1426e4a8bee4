"""The sections of the quality page, one after another.

Here belongs what is said of the figures. A finding is one sentence that can be read alone; it is
what a screen reader hears of the picture, too.
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from expectations.report import audits, charts
from expectations.report.figures import Figures, start_of_step
from expectations.report.section import Heading, Section, section
from expectations.report.words import duration, instant, listed, share
from expectations.results import counted
from transforms.spec import StreamSpec

# So many keys fit into half a page.
_DRAWN: Final = 12


def sections(spec: StreamSpec, figures: Figures) -> Iterator[Section]:
    """Yield the sections in the order in which they are looked at."""
    yield _books(figures)
    yield _lateness(spec, figures)
    yield _dead_letters(spec, figures)
    yield _amended(figures)
    yield _heat(figures)
    yield _lag(figures)
    yield audits.order(figures)
    yield audits.target(spec, figures)
    yield _clocks(figures)


def _books(figures: Figures) -> Section:
    counts = dict(figures.books.iter_rows())
    came = counts["staged"] + counts["held before"]
    ends = {state: rows for state, rows in counts.items() if state not in {"staged", "held before"}}
    missing = came - sum(ends.values())
    became = ", ".join(f"{rows:,} {state}" for state, rows in ends.items() if rows)
    finding = f"All {came:,} rows that came in are accounted for: {became}."
    if missing:
        finding = f"{abs(missing):,} rows {'are missing' if missing > 0 else 'came from nowhere'}."
    first, last = figures.partitions[0].key, figures.partitions[-1].key
    span = f"partition {first}" if first == last else f"partitions {first} to {last}"
    words = (
        f"Arrival {span}. Every row ends in exactly one state, or is still"
        " held; rows held before count among those that came in."
    )
    states = [(state, "", rows) for state, rows in figures.books.iter_rows()]
    reasons = list(figures.reasons.iter_rows())
    heading = Heading("books", "Rows", "Where the rows are")
    table = (("state", "reason", "rows"), [*states, *reasons])
    return section(heading, finding, words, charts.waterfall(figures.books), table)


def _lateness(spec: StreamSpec, figures: Figures) -> Section:
    words = (
        "How far a row was behind the newest event of its key when it came. Rows beyond the grace"
        " of their profile are dead letters or near to it. Rows are drawn on a logarithmic scale."
    )
    rows = [
        (
            profile,
            duration(start_of_step(step)),
            duration(start_of_step(step + 1)),
            count,
            "beyond" if _is_beyond(spec, profile, step) else "within",
        )
        for profile, step, count in figures.lateness.iter_rows()
    ]
    heading = Heading("lateness", "Lateness", "How late rows are")
    columns = ("profile", "from", "to", "rows", "the grace")
    draw = charts.lateness(spec, figures.lateness)
    return section(heading, _beyond(spec, figures.lateness), words, draw, (columns, rows))


def _is_beyond(spec: StreamSpec, profile: str, step: int) -> bool:
    return start_of_step(step) * 1_000_000 >= spec.profiles.named[profile].grace_us


def _beyond(spec: StreamSpec, lateness: pl.DataFrame) -> str:
    """Say of each profile which share of its rows came beyond its grace."""
    found: dict[str, list[int]] = {}
    for profile, step, count in lateness.iter_rows():
        sums = found.setdefault(profile, [0, 0])
        sums[0] += count if _is_beyond(spec, profile, step) else 0
        sums[1] += count
    said = [f"{name} {share(late, rows)}" for name, (late, rows) in found.items()]
    return f"Rows beyond the grace of their profile: {', '.join(said)}." if said else "No rows."


def _dead_letters(spec: StreamSpec, figures: Figures) -> Section:
    days, level = figures.days, spec.alerts.dead_letter_fraction
    dead, staged = int(days["dead"].sum()), int(days["staged"].sum())
    newest = days.row(-1, named=True)
    finding = "There are none."
    if dead:
        finding = (
            f"{share(dead, staged)} of all rows, {share(newest['dead'], newest['staged'])} of"
            f" those of {newest['partition']}."
        )
    above = days.filter(pl.col("fraction") > level)["partition"] if level is not None else None
    alert = "No alert level is declared."
    if above is not None:
        where = f"above it: {listed(above.to_list())}" if len(above) else "never above it"
        alert = f"The alert level is {level:.2%}; {where}."
    rows = [
        (partition, staged, dead, f"{fraction:.2%}")
        for partition, staged, dead, _, fraction in days.sort(
            "fraction", descending=True, maintain_order=True
        ).iter_rows()
    ]
    heading = Heading("dead-letters", "Dead letters", "Dead letters over time", half=True)
    draw = charts.over_time(days, "fraction", "dead letters", level)
    columns = ("partition", "rows", "dead letters", "share")
    words = f"Their share of the rows of each arrival partition. {alert}"
    return section(heading, finding, words, draw, (columns, rows if dead else ()))


def _amended(figures: Figures) -> Section:
    windows, events = (int(figures.amended[name].sum()) for name in ("windows", "rows"))
    finding = "No published window has been amended."
    if windows:
        finding = (
            f"{counted(windows, 'amendment')}; they changed the number of events by {events:,}."
        )
    words = (
        "By the event partition of the window; the table shows those that changed most. Older"
        " revisions are kept: the target can say what was said before."
    )
    rows = [
        (window, key, instant(start), revision, reason, instant(published), before, after)
        for window, key, start, revision, reason, published, before, after in (
            figures.changes.iter_rows()
        )
    ]
    columns = (
        *("window", "key", "start", "revision", "reason"),
        *("published", "events before", "after"),
    )
    heading = Heading("amended", "Amended", "Amended windows", half=True)
    draw = charts.amended(figures.amended)
    return section(heading, finding, words, draw, (columns, rows))


def _heat(figures: Figures) -> Section:
    keys = figures.keys
    table = (
        keys.group_by("key", maintain_order=True)
        .agg(
            pl.col("rows").sum(),
            (pl.col("late") * pl.col("rows")).sum(),
            (pl.col("rows") == 0).sum().cast(pl.Int64).alias("none"),
        )
        .sort(pl.col("late") / pl.col("rows"), descending=True, nulls_last=True)
    )
    rows = [
        (key, count, share(late, count), missing) for key, count, late, missing in table.iter_rows()
    ]
    finding = "No rows."
    if rows:
        worst, _, late, _ = rows[0]
        silent = table.filter(pl.col("none") > 0)["key"].to_list()
        gaps = f" Without a row in some partition: {listed(silent)}." if silent else ""
        finding = f"Latest of all: {worst}, {late} of its rows.{gaps}"
        if not table["late"].sum():
            finding = f"No key had late rows.{gaps}"
    words = (
        "Keys against time: those with the most late rows, and those that were missed most. The"
        " stronger the colour, the more of its rows were late. A red cell with a cross: no row"
        " arrived at all."
    )
    heading = Heading("heat", "Keys", "Late and missing, by key")
    columns = ("key", "rows", "late", "partitions without rows")
    return section(heading, finding, words, charts.heat(keys), (columns, rows))


def _lag(figures: Figures) -> Section:
    end = figures.partitions[-1].end_us
    rows = [
        (key, "not there yet" if lag is None else duration(lag), duration(silent))
        for key, lag, silent in figures.lag.iter_rows()
    ]
    finding = "No key has a watermark."
    if rows:
        finding = f"Furthest behind: {rows[0][0]}, {rows[0][1]}."
    words = (
        f"How far the watermark of a key is behind {instant(end)}, the end of the newest"
        " partition. Windows of a key are published up to its watermark."
    )
    heading = Heading("lag", "Watermarks", "Watermarks", half=True)
    columns = ("key", "watermark behind by", "silent for")
    return section(heading, finding, words, charts.lag(figures.lag[:_DRAWN]), (columns, rows))


def _clocks(figures: Figures) -> Section:
    implausible = sum(
        rows
        for _, reason, rows in figures.reasons.iter_rows()
        if reason == "implausible_event_time"
    )
    rows = [
        (key, future, dead, duration(ahead))
        for key, future, dead, ahead in figures.clocks.iter_rows()
    ]
    finding = "No key sent rows from the future."
    if rows:
        finding = f"Rows from the future came from {listed([str(row[0]) for row in rows])}."
    words = (
        f"Rows from the future count nowhere. {counted(implausible, 'row')} came with an event time"
        " before the floor of the stream."
    )
    heading = Heading("clocks", "Clocks", "Clocks")
    columns = ("key", "rows from the future", "dead letters in all", "ahead by up to")
    return section(heading, finding, words, None, (columns, rows))
