"""The quality page of a stream: one HTML file with all it needs, that opens without a network.

Here belongs what stands on the page, in which order, and in which words. Everything that comes from
the stream is escaped by the template.
"""
# ruff: noqa: PLC0415 (the libraries of the page are not needed to load this module)

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from expectations.report import charts
from expectations.report.charts import Picture
from expectations.report.figures import Figures, start_of_step
from expectations.report.state import State
from expectations.results import Verdict
from transforms.schemas import AMENDED_WINDOWS
from transforms.spec import StreamSpec

if TYPE_CHECKING:
    from markupsafe import Markup

_ROWS: Final = 60


# The names of columns, and rows.
Table = tuple[tuple[str, ...], Iterable[tuple[object, ...]]]


@dataclass(frozen=True)
class Section:
    """A part of the page: what it shows, in words, as a picture if there is one, as a table."""

    anchor: str
    title: str
    words: str
    picture: Picture | None
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0


def page(
    spec: StreamSpec,
    state: State,
    figures: Figures | None,
    verdicts: Sequence[Verdict],
    links: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the page as HTML. ``figures`` is None where nothing is stored yet."""
    import jinja2

    folder = resources.files(__package__)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["code"] = _code
    template = environment.from_string((folder / "page.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        style=(folder / "page.css").read_text(encoding="utf-8"),
        spec=spec,
        state=state,
        tiles=list(_tiles(figures)) if figures else [],
        sections=list(_sections(spec, figures, verdicts)) if figures else [],
        promises=_promises(verdicts),
        links=links,
    )


def _tiles(figures: Figures) -> Iterator[tuple[str, str]]:
    counts = dict(figures.books.iter_rows())
    staged = counts["staged"]
    came = staged + counts["held before"]
    left = sum(count for state, count in counts.items() if state not in {"staged", "held before"})
    yield f"{staged:,}", "rows came in"
    yield ("balanced" if came == left else f"{came - left:+,} rows"), "the books"
    yield _share(counts["dead letters"], staged), "dead letters"
    late = int(figures.days["late"].sum()) + counts["dead letters"]
    yield _share(late, staged), "arrived out of order"
    yield f"{int(figures.amended['windows'].sum()):,}", "windows amended"


def _sections(spec: StreamSpec, figures: Figures, verdicts: Sequence[Verdict]) -> Iterator[Section]:
    first, last = figures.partitions[0].key, figures.partitions[-1].key
    yield _books(figures, f"Arrival partitions {first} to {last}.")
    yield _lateness(spec, figures)
    yield _dead_letters(spec, figures)
    yield _amended(figures)
    yield _heat(figures)
    yield _lag(figures)
    yield _order(figures)
    yield _parity(verdicts)
    yield _clocks(figures)


def _section(
    anchor: str,
    title: str,
    words: str,
    draw: Callable[[int], Any] | None,
    table: Table,
) -> Section:
    columns, rows = table
    listed = [tuple(_text(cell) for cell in row) for row in rows]
    shown = tuple(islice(listed, _ROWS))
    image = charts.picture(draw) if draw is not None and listed else None
    return Section(anchor, title, words, image, columns, shown, len(listed) - len(shown))


def _books(figures: Figures, span: str) -> Section:
    words = f"{span} Every row that came in ends in exactly one state, or is still held."
    states = [(state, "", rows) for state, rows in figures.books.iter_rows()]
    reasons = list(figures.reasons.iter_rows())
    draw = charts.waterfall(figures.books)
    table = (("state", "reason", "rows"), [*states, *reasons])
    return _section("books", "Where the rows are", words, draw, table)


def _lateness(spec: StreamSpec, figures: Figures) -> Section:
    words = (
        "How far a row was behind the newest event of its key when it came. Rows beyond the grace"
        " of their profile are dead letters or near to it. Rows are drawn on a logarithmic scale."
    )
    rows = [
        (
            profile,
            _duration(start_of_step(step)),
            _duration(start_of_step(step + 1)),
            count,
            _place(start_of_step(step), spec.profiles.named[profile].grace_us),
        )
        for profile, step, count in figures.lateness.iter_rows()
    ]
    draw = charts.lateness(spec, figures.lateness)
    columns = ("profile", "from", "to", "rows", "the grace")
    return _section("lateness", "How late rows are", words, draw, (columns, rows))


def _place(from_s: float, grace_us: int) -> str:
    return "beyond" if from_s * 1_000_000 >= grace_us else "within"


def _dead_letters(spec: StreamSpec, figures: Figures) -> Section:
    level = spec.alerts.dead_letter_fraction
    alert = "No alert level is declared." if level is None else f"The alert level is {level:.2%}."
    words = f"The share of dead letters among the rows of each arrival partition. {alert}"
    rows = [
        (partition, staged, dead, f"{fraction:.2%}")
        for partition, staged, dead, _, fraction in figures.days.sort(
            "fraction", descending=True
        ).iter_rows()
    ]
    draw = charts.over_time(figures.days, "fraction", "dead letters", level)
    columns = ("partition", "rows", "dead letters", "share")
    return _section("dead-letters", "Dead letters over time", words, draw, (columns, rows))


def _amended(figures: Figures) -> Section:
    windows = int(figures.amended["windows"].sum())
    words = (
        f"{windows:,} amendments, by the event partition of their window; the table shows those"
        " that changed most. Older revisions are kept: the target can say what was said before."
        if windows
        else "No published window has been amended."
    )
    rows = [
        (window, key, _instant(start), revision, reason, _instant(published), before, after)
        for window, key, start, revision, reason, published, before, after in (
            figures.changes.iter_rows()
        )
    ]
    columns = (
        "window",
        "key",
        "start",
        "revision",
        "reason",
        "published",
        "events before",
        "after",
    )
    draw = charts.amended(figures.amended)
    return _section("amended", "Amended windows", words, draw, (columns, rows))


def _heat(figures: Figures) -> Section:
    keys = figures.keys
    words = (
        "Keys against time, those with the most late rows. The stronger the colour,"
        " the more of its rows were late. Red: no row arrived at all."
    )
    table = keys.group_by("key", maintain_order=True).agg(
        pl.col("rows").sum(),
        (pl.col("late") * pl.col("rows")).sum(),
        (pl.col("rows") == 0).sum().alias("none"),
    )
    rows = [
        (key, count, _share(late, count), missing)
        for key, count, late, missing in table.sort("late", descending=True).iter_rows()
    ]
    columns = ("key", "rows", "late", "partitions without rows")
    return _section("heat", "Late and missing, by key", words, charts.heat(keys), (columns, rows))


def _lag(figures: Figures) -> Section:
    end = figures.partitions[-1].end_us
    words = (
        f"How far the watermark of each key is behind {_instant(end)}, the end of the newest"
        " partition. Windows of a key are published up to its watermark."
    )
    rows = [
        (key, "not there yet" if lag is None else _duration(lag), _duration(silent))
        for key, lag, silent in figures.lag.iter_rows()
    ]
    columns = ("key", "watermark behind by", "silent for")
    return _section("lag", "Watermarks", words, charts.lag(figures.lag), (columns, rows))


def _order(figures: Figures) -> Section:
    days = figures.days.with_columns(
        pl.when(pl.col("staged") > 0)
        .then((pl.col("late") + pl.col("dead")) / pl.col("staged"))
        .otherwise(0.0)
        .alias("disorder")
    )
    words = (
        "The share of rows that came behind an earlier-arrived, newer row of their key: what"
        " reordering mended. In the released stream no pair is out of order, which is a promise"
        " above."
    )
    rows = [
        (row["partition"], row["staged"], row["late"] + row["dead"], f"{row['disorder']:.2%}")
        for row in days.sort("disorder", descending=True).iter_rows(named=True)
    ]
    columns = ("partition", "rows", "out of order", "share")
    draw = charts.over_time(days, "disorder", "out of order")
    return _section("order", "Disorder on arrival", words, draw, (columns, rows))


def _parity(verdicts: Sequence[Verdict]) -> Section:
    about = [v for v in verdicts if v.about.asset == AMENDED_WINDOWS]
    names = sorted({verdict.invariant for verdict in about})
    rows = []
    for name in names:
        listed = [verdict for verdict in about if verdict.invariant == name]
        failing = [verdict.partition for verdict in listed if not verdict.passed]
        state = "holds" if not failing else f"fails in {len(failing)}, last in {failing[-1]}"
        rows.append((listed[0].about.sentence, len(listed), state))
    words = "Whether people can read what was published, by event partition."
    columns = ("promise", "partitions", "state")
    return _section("parity", "The target", words, None, (columns, rows))


def _clocks(figures: Figures) -> Section:
    implausible = sum(
        rows
        for _, reason, rows in figures.reasons.iter_rows()
        if reason == "implausible_event_time"
    )
    words = (
        f"Keys that sent rows from the future, which count nowhere. {implausible:,} rows were"
        " rejected with an event time before the floor of the stream."
    )
    rows = [
        (key, future, dead, _duration(ahead))
        for key, future, dead, ahead in figures.clocks.iter_rows()
    ]
    columns = ("key", "rows from the future", "dead letters in all", "ahead by up to")
    return _section("clocks", "Clocks", words, None, (columns, rows))


def _promises(verdicts: Sequence[Verdict]) -> list[dict[str, object]]:
    """Return every invariant that was judged: in how many partitions it holds."""
    rows: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        rows.setdefault(verdict.invariant, []).append(verdict)
    return [
        {
            "about": listed[0].about,
            "holds": sum(verdict.passed for verdict in listed),
            "judged": len(listed),
            "examined": sum(verdict.examined for verdict in listed),
        }
        for listed in sorted(rows.values(), key=lambda listed: all(v.passed for v in listed))
    ]


def _code(text: str) -> "Markup":
    """Show what stands between backticks as code; everything is escaped."""
    import markupsafe

    parts = [markupsafe.escape(part) for part in text.split("`")]
    marked = [
        part if place % 2 == 0 else f"<code>{part}</code>" for place, part in enumerate(parts)
    ]
    return markupsafe.Markup("").join(markupsafe.Markup(part) for part in marked)  # noqa: S704


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.2%}" if whole else "none"


def _text(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else "" if cell is None else str(cell)


def _instant(us: int | None) -> str:
    if us is None:
        return ""
    return f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%d %H:%M}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
