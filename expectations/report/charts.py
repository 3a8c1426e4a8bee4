"""The pictures of the quality page: Altair charts as SVG that stands in the page itself.

Here belongs how numbers are drawn. Colours are placeholders that the page fills in, so that one
picture serves light, dark and print; each picture comes wide and narrow, for a desk and a phone.
The libraries take seconds to import and are imported inside functions.
"""
# ruff: noqa: PLC0415 (see above)

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from expectations.report.figures import start_of_step
from transforms.spec import StreamSpec

Chart = Any  # an Altair chart; Altair's types are too wide to help here

# Colours no one would choose, and the variables of the page that stand for them.
_TOKENS: Final[Mapping[str, str]] = {
    name: f"#0102{place:02x}"
    for place, name in enumerate(
        ("ink", "muted", "line", "calm", "accent", "warning", "error", "surface"), start=10
    )
}
WIDE, NARROW = 880, 330
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


@dataclass(frozen=True)
class Picture:
    """A chart for a desk and for a phone, as SVG."""

    wide: str
    narrow: str


def picture(draw: Callable[[int], Chart]) -> Picture:
    """Return a chart at both widths; ``draw`` is given the width."""
    return Picture(_svg(draw(WIDE)), _svg(draw(NARROW)))


def _svg(chart: Chart) -> str:
    import vl_convert

    drawn = in_xml(_configured(chart).to_dict())
    svg: str = vl_convert.vegalite_to_svg(drawn, allowed_base_urls=[])
    svg = re.sub(r'<rect width="[\d.]+" height="[\d.]+" fill="white"/>', "", svg, count=1)
    # The picture is hidden from screen readers, which have the table.
    svg = re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", svg)
    for name, token in _TOKENS.items():
        svg = svg.replace(f'"{token}"', f'"var(--{name})"')
    return svg


def in_xml(value: Any) -> Any:
    """Return JSON with every character that XML has none of as an escape.

    A key may hold any; the library that draws would end the process at the first.
    """
    if isinstance(value, str):
        return _NOT_IN_XML.sub(lambda found: ascii(found[0])[1:-1], value)
    if isinstance(value, dict):
        return {in_xml(name): in_xml(inner) for name, inner in value.items()}
    return [in_xml(inner) for inner in value] if isinstance(value, list) else value


def _configured(chart: Chart) -> Chart:
    return (
        chart.configure(
            font=_FONT,
            background="transparent",
            # The browser's letters may be wider than those the picture was laid out with.
            padding={"left": 16, "top": 5, "right": 8, "bottom": 5},
        )
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=_TOKENS["muted"],
            titleColor=_TOKENS["muted"],
            titleFontWeight="normal",
            gridColor=_TOKENS["line"],
            domainColor=_TOKENS["line"],
            tickColor=_TOKENS["line"],
            labelFontSize=12,
            titleFontSize=12,
        )
        .configure_header(labelColor=_TOKENS["ink"], title=None, labelFontSize=13)
        .configure_text(color=_TOKENS["ink"], fontSize=12)
        .configure_title(color=_TOKENS["ink"])
    )


def _data(rows: Iterable[Mapping[str, Any]]) -> Any:
    import altair as alt

    return alt.InlineData(values=list(rows))


def waterfall(books: pl.DataFrame) -> Callable[[int], Chart]:
    """Draw what came in on the left, and what became of it step by step down to nothing."""
    counts = dict(books.iter_rows())
    top = counts["staged"] + counts["held before"]
    steps = [{"state": "came in", "low": 0, "high": top, "rows": top, "kind": "ink"}]
    left = top
    kinds = {"ordered": "calm", "duplicates": "muted", "held": "accent"}
    kinds |= {"dead letters": "warning", "rejected": "error"}
    for state in ("ordered", "duplicates", "dead letters", "rejected", "held"):
        steps.append({"state": state, "low": left - counts[state], "high": left,
                      "rows": counts[state], "kind": kinds[state]})  # fmt: skip
        left -= counts[state]
    if left:
        steps.append({"state": "missing", "low": 0, "high": left, "rows": left, "kind": "error"})

    def draw(width: int) -> Chart:
        import altair as alt

        named = [{**step, "label": f"{step['rows']:,}"} for step in steps]
        order = [step["state"] for step in steps]
        base = alt.Chart(_data(named), width=width - 130, height=30 * len(steps))
        y = alt.Y("state:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False))
        bars = base.mark_bar(cornerRadius=2, minBandSize=2, height=18).encode(
            x=alt.X("low:Q", title="rows", axis=alt.Axis(format="~s", tickCount=5)),
            x2="high:Q",
            y=y,
            color=_named_colour(kind for kind in _TOKENS),
        )
        texts = base.mark_text(align="left", dx=6, fontWeight="bold").encode(
            x="high:Q", y=y, text="label:N"
        )
        first = base.mark_text(align="right", dx=-6, color=_TOKENS["surface"]).encode(
            x="high:Q", y=y, text="label:N"
        )
        is_wide = "datum.high - datum.low > 0.3 * " + str(max(top, 1))
        return bars + first.transform_filter(is_wide) + texts.transform_filter(f"!({is_wide})")

    return draw


def _named_colour(kinds: Iterable[str]) -> Any:
    import altair as alt

    names = list(kinds)
    scale = alt.Scale(domain=names, range=[_TOKENS[name] for name in names])
    return alt.Color("kind:N", scale=scale, legend=None)


def lateness(spec: StreamSpec, steps: pl.DataFrame) -> Callable[[int], Chart]:
    """Draw how far rows were behind, a row of bars for each profile, with its grace as a line."""
    rows = [
        {
            "profile": profile,
            "low": max(start_of_step(step), 0.5),
            "high": start_of_step(step + 1) if step else 1.0,
            "rows": count,
            "none": 0,
            "kind": "calm",
        }
        for profile, step, count in steps.iter_rows()
    ]
    graces = {name: profile.grace_us / 1e6 for name, profile in spec.profiles.named.items()}
    for row in rows:
        if row["low"] >= graces[row["profile"]]:
            row["kind"] = "warning"
    shown = sorted({row["profile"] for row in rows})
    tens = [10**power for power in range(1, 12)]
    top = max([row["high"] for row in rows] + [graces[name] * 1.5 for name in shown], default=1.0)

    def draw(width: int) -> Chart:
        import altair as alt

        scale = alt.Scale(type="log", domain=[0.5, top], nice=False)
        axis = alt.Axis(labelExpr=_DURATION, values=_marks(top), grid=False)
        x = alt.X("low:Q", scale=scale, axis=axis, title="behind the newest event of its key")
        base = alt.Chart(_data(rows)).mark_bar(stroke=_TOKENS["surface"], strokeWidth=0.6)
        bars = base.encode(
            x=x, x2="high:Q", color=_named_colour(_TOKENS),
            y=alt.Y("rows:Q", title="rows", axis=alt.Axis(format="~s", values=tens),
                    scale=alt.Scale(type="symlog")),
            y2="none:Q",
        )  # fmt: skip
        charts = []
        for profile in shown:
            line = _data([{"low": max(graces[profile], 0.5), "text": "grace"}])
            rule = alt.Chart(line).mark_rule(
                color=_TOKENS["error"], strokeWidth=2, strokeDash=[5, 3]
            )
            word = alt.Chart(line).mark_text(
                color=_TOKENS["error"], align="left", dx=5, y=8, fontWeight="bold"
            )
            layer = (
                bars.transform_filter(alt.datum.profile == profile)
                + rule.encode(x=x)
                + word.encode(x=x, text="text:N")
            )
            title = alt.TitleParams(profile, anchor="start", fontSize=13)
            charts.append(layer.properties(width=width - 70, height=110, title=title))
        return alt.vconcat(*charts).resolve_scale(x="shared")

    return draw


_DURATION: Final = (
    "datum.value < 1 ? 'newest' : datum.value < 60 ? datum.value + ' s' : datum.value < 3600 ?"
    " datum.value / 60 + ' min' : datum.value < 86400 ? datum.value / 3600 + ' h'"
    " : datum.value / 86400 + ' d'"
)


def _marks(top: float) -> list[float]:
    marks = [0.5, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400]
    return [mark for mark in marks if mark <= top]


def over_time(
    days: pl.DataFrame, column: str, title: str, level: float | None = None
) -> Callable[[int], Chart]:
    """Draw a share per partition, those above the level in another colour, and the level."""
    rows = [
        {
            "partition": partition,
            "share": share,
            "kind": "warning" if level is not None and share > level else "calm",
        }
        for partition, share in days.select("partition", column).iter_rows()
    ]

    def draw(width: int) -> Chart:
        import altair as alt

        x = alt.X("partition:N", title=None, axis=_few_labels(len(rows), width))
        y = alt.Y("share:Q", title=title, axis=alt.Axis(format="~%", tickCount=4))
        bars = (
            alt.Chart(_data(rows), width=width - 70, height=140)
            .mark_bar()
            .encode(x=x, y=y, color=_named_colour(_TOKENS))
        )
        if level is None:
            return bars
        limit = alt.Chart(_data([{"share": level, "text": "alert level"}]))
        rule = limit.mark_rule(color=_TOKENS["error"], strokeDash=[5, 3]).encode(y=y)
        word = limit.mark_text(align="left", x=4, dy=-7, color=_TOKENS["error"]).encode(
            y=y, text="text:N"
        )
        return bars + rule + word

    return draw


def _few_labels(count: int, width: int) -> Any:
    import altair as alt

    every = max(1, -(-count * 95 // (width - 70)))
    shown = f"indexof(domain('x'), datum.value) % {every} == 0"
    return alt.Axis(
        labelExpr=f"{shown} ? datum.value : ''", labelAngle=0, ticks=False, labelOverlap=False,
        labelAlign="left", labelPadding=6,
    )  # fmt: skip


def amended(days: pl.DataFrame) -> Callable[[int], Chart]:
    """Draw how many windows of each event partition were amended."""
    rows = [{**row, "kind": "accent"} for row in days.iter_rows(named=True)]

    def draw(width: int) -> Chart:
        import altair as alt

        return (
            alt.Chart(_data(rows), width=width - 70, height=140)
            .mark_bar()
            .encode(
                x=alt.X("partition:N", title=None, axis=_few_labels(len(rows), width)),
                y=alt.Y("windows:Q", title="windows", axis=alt.Axis(format="~s", tickCount=4)),
                color=_named_colour(_TOKENS),
            )
        )

    return draw


def heat(keys: pl.DataFrame) -> Callable[[int], Chart]:
    """Draw keys against time: darker where more rows were late, red where none came."""
    names = keys["key"].unique(maintain_order=True).to_list()
    rows = keys.with_columns(pl.col("key").str.slice(0, 24).alias("short")).to_dicts()
    top = max((row["late"] or 0 for row in rows), default=0) or 1

    def draw(width: int) -> Chart:
        import altair as alt

        columns = keys["partition"].n_unique()
        edge: dict[str, Any] = {"stroke": _TOKENS["surface"]} if columns * 8 < width else {}
        base = alt.Chart(_data(rows), width=width - 130, height=max(20 * len(names), 40)).encode(
            x=alt.X("partition:N", title=None, axis=_few_labels(columns, width - 40)),
            y=alt.Y("short:N", title=None, axis=alt.Axis(ticks=False, domain=False)),
        )
        opacity = alt.Opacity(
            "late:Q", scale=alt.Scale(domain=[0, top], range=[0.06, 1]), legend=None
        )
        cells = base.mark_rect(color=_TOKENS["calm"], **edge).encode(opacity=opacity)
        missing = base.mark_rect(
            color=_TOKENS["error"], stroke=_TOKENS["surface"]
        ).transform_filter("datum.rows == 0")
        return cells.transform_filter("datum.rows > 0") + missing

    return draw


def lag(keys: pl.DataFrame) -> Callable[[int], Chart]:
    """Draw how far the watermark of each key is behind the end of the newest partition."""
    rows = [
        {"key": key[:24], "lag": max(lag_s or 0, 1), "none": 1, "kind": "calm"}
        for key, lag_s, _ in keys.iter_rows()
    ]
    top = max((row["lag"] for row in rows), default=1)

    def draw(width: int) -> Chart:
        import altair as alt

        axis = alt.Axis(labelExpr=_DURATION, values=_marks(top), title="behind")
        return (
            alt.Chart(_data(rows), width=width - 130, height=max(20 * len(rows), 40))
            .mark_bar(height=12, cornerRadius=2)
            .encode(
                x=alt.X("lag:Q", scale=alt.Scale(type="log", domain=[1, max(top, 2)]), axis=axis),
                x2="none:Q",
                y=alt.Y(
                    "key:N",
                    sort=[row["key"] for row in rows],
                    title=None,
                    axis=alt.Axis(ticks=False, domain=False),
                ),
                color=_named_colour(_TOKENS),
            )
        )

    return draw
