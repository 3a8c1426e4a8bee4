"""How a chart becomes a picture: SVG that stands in the page itself, in the colours of the page.

Here belongs what all pictures share. Colours are placeholders that the page fills in, so that one
picture serves light, dark and print; each picture comes wide and narrow, for a desk and a phone.
The libraries take seconds to import and are imported inside functions.
"""
# ruff: noqa: PLC0415 (see above)

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Chart = Any  # an Altair chart; Altair's types are too wide to help here

# Colours no one would choose, and the variables of the page that stand for them.
TOKENS: Final[Mapping[str, str]] = {
    name: f"#0102{place:02x}"
    for place, name in enumerate(
        ("ink", "muted", "line", "calm", "accent", "warning", "error", "surface", "good"), start=10
    )
}
WIDE, HALF, NARROW = 900, 430, 330
# A bar for a partition is no wider than this, however few there are.
STEP: Final = 44
# Keys longer than this are drawn with their middle left out.
KEY_LETTERS: Final = 20
SHORTENED: Final = (
    f"length(datum.label) > {KEY_LETTERS} ? slice(datum.label, 0, {KEY_LETTERS // 2}) + '…'"
    f" + slice(datum.label, -{KEY_LETTERS // 2 - 1}) : datum.label"
)
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


@dataclass(frozen=True)
class Picture:
    """A chart for a desk and for a phone, as SVG."""

    wide: str
    narrow: str


def picture(draw: Callable[[int], Chart], wide: int = WIDE) -> Picture:
    """Return a chart at both widths; ``draw`` is given the width."""
    return Picture(_svg(draw(wide)), _svg(draw(NARROW)))


def _svg(chart: Chart) -> str:
    import vl_convert

    drawn = in_xml(_configured(chart).to_dict())
    svg: str = vl_convert.vegalite_to_svg(drawn, allowed_base_urls=[])
    svg = re.sub(r'<rect width="[\d.]+" height="[\d.]+" fill="white"/>', "", svg, count=1)
    # The picture is hidden from screen readers, which have the table.
    svg = re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", svg)
    for name, token in TOKENS.items():
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
            labelColor=TOKENS["muted"],
            titleColor=TOKENS["muted"],
            titleFontWeight="normal",
            gridColor=TOKENS["line"],
            domainColor=TOKENS["line"],
            tickColor=TOKENS["line"],
            labelFontSize=12,
            titleFontSize=12,
        )
        .configure_header(labelColor=TOKENS["ink"], title=None, labelFontSize=13)
        .configure_text(color=TOKENS["ink"], fontSize=12)
        .configure_title(color=TOKENS["ink"])
    )


def data(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows as the data of a chart."""
    import altair as alt

    return alt.InlineData(values=list(rows))


def colour_of_kind(kinds: Iterable[str]) -> Any:
    """Return a colour that goes by the column ``kind``, a name of a token."""
    import altair as alt

    names = list(kinds)
    scale = alt.Scale(domain=names, range=[TOKENS[name] for name in names])
    return alt.Color("kind:N", scale=scale, legend=None)
