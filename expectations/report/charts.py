"""The pictures of the quality page, as Altair charts.

Here belongs what is drawn of which numbers. How a chart becomes a picture is in ``drawing``.
"""
# ruff: noqa: PLC0415 (the library takes seconds to import)

from collections.abc import Callable
from typing import Any, Final

import polars as pl

from expectations.report.drawing import SHORTENED, STEP, TOKENS, Chart, colour_of_kind, data
from expectations.report.figures import start_of_step
from transforms.spec import StreamSpec

# Each number with a prefix of its own: 500, 1k.
_SHORT: Final = "format(datum.value, '~s')"


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
        base = alt.Chart(data(named), width=width - 130, height=30 * len(steps))
        y = alt.Y("state:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False))
        bars = base.mark_bar(cornerRadius=2, minBandSize=2, height=18).encode(
            x=alt.X(
                "low:Q",
                title="rows",
                axis=alt.Axis(labelExpr=_SHORT, tickCount=5, labelOverlap=True),
            ),
            x2="high:Q",
            y=y,
            color=colour_of_kind(kind for kind in TOKENS),
        )
        texts = base.mark_text(align="left", dx=6, fontWeight="bold").encode(
            x="high:Q", y=y, text="label:N"
        )
        first = base.mark_text(align="right", dx=-6, color=TOKENS["surface"]).encode(
            x="high:Q", y=y, text="label:N"
        )
        is_wide = "datum.high - datum.low > 0.3 * " + str(max(top, 1))
        return bars + first.transform_filter(is_wide) + texts.transform_filter(f"!({is_wide})")

    return draw


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
        axis = alt.Axis(labelExpr=_DURATION, values=_marks(top), grid=False, labelOverlap=True)
        x = alt.X("low:Q", scale=scale, axis=axis, title="behind the newest event of its key")
        base = alt.Chart(data(rows)).mark_bar(stroke=TOKENS["surface"], strokeWidth=0.6)
        bars = base.encode(
            x=x, x2="high:Q", color=colour_of_kind(TOKENS),
            y=alt.Y("rows:Q", title="rows", axis=alt.Axis(labelExpr=_SHORT, values=tens),
                    scale=alt.Scale(type="symlog")),
            y2="none:Q",
        )  # fmt: skip
        charts = []
        for profile in shown:
            line = data([{"low": max(graces[profile], 0.5), "text": "grace"}])
            rule = alt.Chart(line).mark_rule(
                color=TOKENS["error"], strokeWidth=2, strokeDash=[5, 3]
            )
            # Above the bars, which may be as high as there is room.
            word = alt.Chart(line).mark_text(
                color=TOKENS["error"], align="center", y=-7, fontWeight="bold"
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

        y = alt.Y("share:Q", title=title, axis=alt.Axis(format="~%", tickCount=4))
        bars = _by_partition(rows, width, 140).encode(y=y)
        if level is None:
            return bars
        limit = alt.Chart(data([{"share": level, "text": "alert level"}]))
        rule = limit.mark_rule(color=TOKENS["error"], strokeDash=[5, 3]).encode(y=y)
        word = limit.mark_text(align="left", x=4, dy=-7, color=TOKENS["error"]).encode(
            y=y, text="text:N"
        )
        return bars + rule + word

    return draw


def _by_partition(rows: list[dict[str, Any]], width: int, height: int) -> Chart:
    """Return bars along the partitions, in the colour of their kind."""
    import altair as alt

    room = min(width - 70, STEP * len(rows))
    names = [row["partition"] for row in rows]
    x = alt.X("partition:N", title=None, axis=_few_labels(names, room))
    base = alt.Chart(data(rows), width=room, height=height).mark_bar()
    return base.encode(x=x, color=colour_of_kind(TOKENS))


def _few_labels(partitions: list[str], room: int) -> Any:
    """Return an axis of partitions with as many labels as there is room for."""
    import altair as alt

    width = 20 + 7 * max(map(len, partitions), default=0)
    every = max(1, -(-len(partitions) * width // room))
    return alt.Axis(
        values=partitions[::every], labelAngle=0, ticks=False, labelOverlap=False,
        labelAlign="left", labelPadding=6,
    )  # fmt: skip


def amended(days: pl.DataFrame) -> Callable[[int], Chart]:
    """Draw how many windows of each event partition were amended, and by how many events."""
    rows = [{**row, "kind": "accent"} for row in days.iter_rows(named=True)]

    def draw(width: int) -> Chart:
        import altair as alt

        axis = alt.Axis(labelExpr=_SHORT, tickCount=3)
        return alt.vconcat(
            *(
                _by_partition(rows, width, 60).encode(y=alt.Y(f"{name}:Q", title=title, axis=axis))
                for name, title in (("windows", "windows"), ("rows", "events"))
            )
        )

    return draw


_VERDICTS: Final = {"EQUAL": "good", "NOT PROVED": "muted"}


def proofs(found: pl.DataFrame) -> Callable[[int], Chart]:
    """Draw a cell for each event partition, in the colour of what was proved; no colour alone."""
    rows = [
        {"partition": partition, "kind": _VERDICTS.get(verdict, "error"), "high": height}
        for partition, verdict in found.select("partition", "verdict").iter_rows()
        for height in [1 if verdict == "EQUAL" else 2]
    ]

    def draw(width: int) -> Chart:
        import altair as alt

        return _by_partition(rows, width, 36).encode(y=alt.Y("high:Q", axis=None))

    return draw


def heat(keys: pl.DataFrame) -> Callable[[int], Chart]:
    """Draw keys against time: darker where more rows were late, red where none came."""
    names = keys["key"].unique(maintain_order=True).to_list()
    rows = keys.to_dicts()
    top = max((row["late"] or 0 for row in rows), default=0) or 1

    def draw(width: int) -> Chart:
        import altair as alt

        partitions = keys["partition"].unique(maintain_order=True).to_list()
        columns = len(partitions)
        room = min(width - 150, STEP * columns)
        is_large = columns * 10 < room
        edge: dict[str, Any] = {"stroke": TOKENS["surface"]} if is_large else {}
        base = alt.Chart(data(rows), width=room, height=max(20 * len(names), 40)).encode(
            x=alt.X("partition:N", title=None, axis=_few_labels(partitions, room)),
            y=_keys(names),
        )
        opacity = alt.Opacity(
            "late:Q", scale=alt.Scale(domain=[0, top], range=[0.06, 1]), legend=None
        )
        cells = base.mark_rect(color=TOKENS["calm"], **edge).encode(opacity=opacity)
        missing = base.mark_rect(color=TOKENS["error"], **edge).transform_filter("datum.rows == 0")
        drawn = cells.transform_filter("datum.rows > 0") + missing
        if not is_large:
            return drawn
        cross = base.mark_text(text="\u00d7", color=TOKENS["surface"], fontWeight="bold")
        return drawn + cross.transform_filter("datum.rows == 0")

    return draw


def _keys(names: list[str]) -> Any:
    """Return an axis of keys in their order; two that look alike shortened stay two."""
    import altair as alt

    axis = alt.Axis(ticks=False, domain=False, labelExpr=SHORTENED, labelLimit=150)
    return alt.Y("key:N", sort=names, title=None, axis=axis)


def lag(keys: pl.DataFrame) -> Callable[[int], Chart]:
    """Draw how far the watermark of each key is behind the end of the newest partition."""
    rows = [
        {"key": key, "lag": max(lag_s or 0, 1), "none": 1, "kind": "calm"}
        for key, lag_s, _ in keys.iter_rows()
    ]
    top = max((row["lag"] for row in rows), default=1)

    def draw(width: int) -> Chart:
        import altair as alt

        axis = alt.Axis(labelExpr=_DURATION, values=_marks(top), title="behind", labelOverlap=True)
        return (
            alt.Chart(data(rows), width=width - 160, height=max(20 * len(rows), 40))
            .mark_bar(height=12, cornerRadius=2)
            .encode(
                x=alt.X("lag:Q", scale=alt.Scale(type="log", domain=[1, max(top, 2)]), axis=axis),
                x2="none:Q",
                y=_keys([row["key"] for row in rows]),
                color=colour_of_kind(TOKENS),
            )
        )

    return draw
