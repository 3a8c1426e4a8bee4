"""The quality page of a stream: one HTML file with all it needs, that opens without a network.

Here belongs what stands on the page, and in which order; what is said of the numbers is in
``sections``. Everything that comes from the stream is escaped by the template.
"""
# ruff: noqa: PLC0415 (the libraries of the page are not needed to load this module)

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from expectations.invariants import CATALOGUE, Invariant
from expectations.report.figures import Figures
from expectations.report.sections import sections
from expectations.report.state import State
from expectations.report.words import duration, instant, share
from expectations.results import Verdict
from transforms.spec import StreamSpec

if TYPE_CHECKING:
    from markupsafe import Markup

# So many problems are told in full; those after them mostly follow from the first.
_TOLD: Final = 3
# So many partitions have a mark of their own beside a promise.
_MARKS: Final = 30


@dataclass(frozen=True)
class Promise:
    """An invariant that was judged: in how many partitions it holds, and in which of the newest."""

    about: Invariant
    verdicts: tuple[Verdict, ...]

    @property
    def judged(self) -> int:
        """In how many partitions it was judged."""
        return len(self.verdicts)

    @property
    def holds(self) -> int:
        """In how many partitions it holds."""
        return sum(verdict.passed for verdict in self.verdicts)

    @property
    def examined(self) -> int:
        """How much was looked at."""
        return sum(verdict.examined for verdict in self.verdicts)

    @property
    def level(self) -> str:
        """``good``, or its severity where it fails anywhere."""
        return "good" if self.holds == self.judged else self.about.severity

    @property
    def marks(self) -> list[str]:
        """The level of each of the newest partitions, oldest first."""
        newest = self.verdicts[-_MARKS:]
        return ["good" if verdict.passed else self.about.severity for verdict in newest]


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
    problems = [*state.errors, *state.warnings]
    return template.render(
        style=(folder / "page.css").read_text(encoding="utf-8"),
        spec=spec,
        state=state,
        told=problems[:_TOLD],
        untold=problems[_TOLD:],
        facts=list(_facts(state, figures)),
        tiles=list(_tiles(figures)) if figures else [],
        sections=list(sections(spec, figures)) if figures else [],
        promises=_promises(verdicts),
        links=links,
    )


def _facts(state: State, figures: Figures | None) -> Iterator[tuple[str, str]]:
    """What was judged, when, and how old the newest row was then."""
    if not state.judged:
        return
    yield "Judged", f"{state.judged_at[:16].replace('T', ' ')}, {state.judged:,} verdicts"
    yield "Up to", f"partition {state.newest}"
    if figures is not None and figures.heard_us is not None:
        yield "Newest row", f"arrived {instant(figures.heard_us)}{_age(state, figures.heard_us)}"


def _age(state: State, heard_us: int) -> str:
    """Say how old a row was when it was judged."""
    judged_us = state.judged_at_us
    if judged_us is None or judged_us < heard_us:
        return ""
    return f", {duration((judged_us - heard_us) / 1e6)} before"


def _tiles(figures: Figures) -> Iterator[tuple[str, str, str]]:
    counts = dict(figures.books.iter_rows())
    staged = counts["staged"]
    came = staged + counts["held before"]
    left = sum(count for state, count in counts.items() if state not in {"staged", "held before"})
    yield f"{staged:,}", "rows came in", ""
    books = "balanced" if came == left else f"{came - left:+,} rows"
    yield books, "the books", "" if came == left else "error"
    judged, late, dead = (int(figures.days[name].sum()) for name in ("staged", "late", "dead"))
    yield share(dead, judged), "dead letters", ""
    yield share(late + dead, judged), "arrived out of order", ""
    yield f"{int(figures.amended['windows'].sum()):,}", "windows amended", ""
    proved = figures.proofs.filter(verdict="EQUAL").height
    of_all = figures.proofs.height
    if of_all:
        level = "" if proved == of_all else "error"
        yield f"{proved:,}/{of_all:,}", "days proved in the target", level


def _promises(verdicts: Sequence[Verdict]) -> list[Promise]:
    """Return every invariant that was judged, those that fail first."""
    found = [
        Promise(about, tuple(sorted(listed, key=lambda verdict: verdict.partition)))
        for about in CATALOGUE
        if (listed := [verdict for verdict in verdicts if verdict.invariant == about.name])
    ]
    order = {"error": 0, "warning": 1, "good": 2}
    return sorted(found, key=lambda promise: order[promise.level])


def _code(text: str) -> "Markup":
    """Show what stands between backticks as code; everything is escaped."""
    import markupsafe

    parts = [markupsafe.escape(part) for part in text.split("`")]
    marked = [
        part if place % 2 == 0 else f"<code>{part}</code>" for place, part in enumerate(parts)
    ]
    return markupsafe.Markup("").join(markupsafe.Markup(part) for part in marked)  # noqa: S704
