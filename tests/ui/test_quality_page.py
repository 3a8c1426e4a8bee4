"""The quality page in a real browser: quiet, offline, readable; pictures are kept to be looked at.

Run by `make test-ui`; the pictures are in `data/pictures`, or where LOWWATER_PICTURES says.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from chromium import picture
from gauges import DAYS, River, event_days, flow

from assets.stored import stored_of
from expectations.invariants import CATALOGUE
from expectations.report.figures import Figures, figures
from expectations.report.page import page
from expectations.report.state import state_of
from expectations.results import Fault, Verdict

pytestmark = [pytest.mark.ui, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

HOSTILE = "<img src=x onerror=alert(1)><script>document.title='owned'</script>"
SCREENS = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
# The pages, each with the level that its title begins with.
LEVELS = {name: name for name in ("good", "warning", "error", "unknown")}
LEVELS |= {"calm": "good", "crowded": "error"}
PROVED = ("the_target_equals_the_lake_to_the_bit", "no_same_key_pair_is_inverted")


@pytest.fixture(scope="module")
def river(tmp_path_factory: pytest.TempPathFactory) -> River:
    return flow(tmp_path_factory.mktemp("river"))


@pytest.fixture(scope="module")
def numbers(river: River) -> Figures:
    return figures(
        stored_of(river.lake, river.spec, river.arrivals, DAYS),
        stored_of(river.lake, river.spec, river.events, event_days(river)),
    )


def verdicts(*failing: str) -> list[Verdict]:
    worst = (Fault("mill", 5, "5 rows are in no state"), Fault(HOSTILE, 2, HOSTILE))
    good = [
        Verdict(i.name, day, passed=True, examined=70, violations=0, judged_at="2024-03-05T00:10")
        for i in CATALOGUE
        for day in DAYS
    ]
    return [
        replace(v, passed=False, violations=7, faults=2, worst=worst)
        if v.invariant in failing and v.partition >= DAYS[2]
        else v
        for v in good
    ]


def crowded(numbers: Figures) -> Figures:
    """Thirty keys of long names over hundreds of hours, a proof and an audit that failed."""
    hours = [f"2024-03-{day:02}-{hour:02}:00" for day in range(1, 16) for hour in range(24)]
    names = [f"region-north/valley-of-the-long-names/station-{number:08}" for number in range(30)]
    cells = [(hour, name, len(name) % 3, 0.2) for name in names for hour in hours]
    days = [(hour, 70, 7, 3, 0.1) for hour in hours]
    is_first = pl.int_range(pl.len()) == 0
    return replace(
        numbers,
        keys=pl.DataFrame(cells, schema=numbers.keys.schema, orient="row"),
        days=pl.DataFrame(days, schema=numbers.days.schema, orient="row"),
        lag=pl.DataFrame([(n, 9.0, 1.0) for n in names], schema=numbers.lag.schema, orient="row"),
        orders=numbers.orders.with_columns(is_kept=~is_first),
        proofs=numbers.proofs.with_columns(
            verdict=pl.when(is_first).then(pl.lit("CHANGED")).otherwise(pl.lit("NOT PROVED"))
        ),
    )


def calm(numbers: Figures) -> Figures:
    """One partition in which nothing is late, refused or amended."""
    one = replace(numbers, partitions=numbers.partitions[:1])
    emptied = ("reasons", "amended", "changes", "clocks", "proofs")
    nothing = pl.col("dead", "late", "fraction") * 0
    is_kept = pl.col("state").is_in(["staged", "ordered"])
    return replace(
        one,
        books=numbers.books.with_columns(rows=pl.when(is_kept).then(70).otherwise(0)),
        days=numbers.days[:1].with_columns(nothing),
        keys=numbers.keys[:1].with_columns(late=0.0),
        lateness=numbers.lateness[:1],
        orders=numbers.orders[:1].with_columns(pl.col("disorder") * 0),
        **{name: getattr(numbers, name).clear() for name in emptied},
    )


@pytest.fixture(scope="module")
def pages(
    river: River, numbers: Figures, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A page for each state, some of them with names or numbers that are hard to lay out."""
    spoilt = replace(
        numbers,
        lag=numbers.lag.with_columns(key=numbers.lag["key"].replace("mill", HOSTILE)),
        keys=numbers.keys.with_columns(key=numbers.keys["key"].replace("mill", HOSTILE)),
    )
    hostile = river.spec.model_copy(update={"description": HOSTILE})
    news = "clocks_are_right"
    broken = (news, "every_row_is_accounted_for", *(i.name for i in CATALOGUE[5:9]))
    said = {
        "good": page(river.spec, state_of(verdicts()), numbers, verdicts()),
        "warning": page(river.spec, state_of(verdicts(news)), numbers, verdicts(news)),
        "error": page(hostile, state_of(verdicts(*broken)), spoilt, verdicts(*broken)),
        "unknown": page(river.spec, state_of([]), None, []),
        "calm": page(river.spec, state_of(verdicts()), calm(numbers), verdicts()),
        "crowded": page(
            river.spec, state_of(verdicts(*PROVED)), crowded(numbers), verdicts(*PROVED)
        ),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, html in said.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in said}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", LEVELS)
def test_the_page_is_quiet_offline_and_fits_the_screen(
    browser: Any, pages: dict[str, Path], name: str, screen: str, scheme: str
) -> None:
    tab = browser.new_page(viewport=SCREENS[screen], color_scheme=scheme)
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: said.append(dialog.message))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(pages[name].as_uri())
    picture(tab, f"{name}-{screen}-{scheme}", full_page=True)
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.title().startswith(LEVELS[name])
    tab.close()


def test_hostile_names_are_shown_and_do_nothing(browser: Any, pages: dict[str, Path]) -> None:
    tab = browser.new_page()
    tab.goto(pages["error"].as_uri())
    assert tab.locator("script, img").count() == 0
    assert tab.get_by_text(HOSTILE, exact=True).count() >= 1
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
@pytest.mark.parametrize("name", ["warning", "error", "crowded"])
def test_text_and_marks_can_be_told_from_their_ground(
    browser: Any, pages: dict[str, Path], name: str, scheme: str
) -> None:
    """Text has the contrast that WCAG AA asks for, in pictures too; what is drawn has 3 to 1."""
    tab = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    tab.goto(pages[name].as_uri())
    tab.emulate_media(media="print" if scheme == "print" else "screen")
    tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert tab.evaluate(CONTRAST, [TEXT, "color", 4.5]) == []
    assert tab.evaluate(CONTRAST, ["figure text", "fill", 4.5]) == []
    assert tab.evaluate(CONTRAST, ["figure .mark-rect path, .history i", "", 3]) == []
    tab.close()


def test_nothing_moves(browser: Any, pages: dict[str, Path]) -> None:
    tab = browser.new_page(reduced_motion="reduce")
    tab.goto(pages["error"].as_uri())
    assert tab.evaluate("document.getAnimations().length") == 0
    moving = "e => getComputedStyle(e).transitionDuration + getComputedStyle(e).animationName"
    assert tab.locator("body, nav a, summary").evaluate_all(
        f"all => [...new Set(all.map({moving}))]"
    ) == ["0snone"]
    tab.close()


def test_a_screen_reader_hears_the_finding_of_every_picture_and_the_state_first(
    browser: Any, pages: dict[str, Path]
) -> None:
    tab = browser.new_page()
    tab.goto(pages["error"].as_uri())
    heard = tab.locator("main").aria_snapshot()
    assert heard.index("published numbers may be wrong") < heard.index("Start here")
    assert heard.index("What to do") < heard.index("Where the rows are")
    pictures = tab.get_by_role("img").evaluate_all("all => all.map(e => e.ariaLabel)")
    assert len(pictures) == tab.locator("figure").count() >= 7
    findings = tab.locator("section:has(figure) .finding").all_inner_texts()
    assert all(said in label for said, label in zip(findings, pictures, strict=True))
    assert tab.locator("svg [role], svg[role], svg [aria-label]").count() == 0
    for region in tab.get_by_role("region").all():
        assert region.get_attribute("aria-label") or region.get_attribute("aria-labelledby")
    tab.close()


def test_the_command_is_chosen_whole_with_one_click(browser: Any, pages: dict[str, Path]) -> None:
    tab = browser.new_page()
    tab.goto(pages["error"].as_uri())
    tab.locator(".do code").first.click()
    assert tab.evaluate("getSelection().toString()") == f"lowwater run river --from {DAYS[2]}"
    tab.close()


def test_problems_after_the_first_are_a_key_press_away(
    browser: Any, pages: dict[str, Path]
) -> None:
    tab = browser.new_page()
    tab.goto(pages["error"].as_uri())
    last = tab.locator(".problem").last
    assert not last.is_visible()
    tab.locator(".others summary").focus()
    tab.keyboard.press("Enter")
    assert last.is_visible()
    tab.close()


def test_the_keyboard_reaches_every_section_and_table(browser: Any, pages: dict[str, Path]) -> None:
    tab = browser.new_page()
    tab.goto(pages["error"].as_uri())
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    links = tab.locator("nav a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert all(tab.locator(link).count() == 1 for link in links)
    assert tab.locator("div.scroll:not([tabindex='0'])").count() == 0
    assert tab.locator("figure:not([aria-label])").count() == 0
    headings = tab.locator("h1, h2, h3").evaluate_all("all => all.map(h => +h.tagName[1])")
    assert headings[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(headings))
    tab.close()


def test_the_page_prints_to_pdf(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    tab = browser.new_page()
    tab.goto(pages["error"].as_uri())
    tab.pdf(path=tmp_path / "page.pdf", format="A4", print_background=True)
    assert (tmp_path / "page.pdf").stat().st_size > 20_000
    tab.close()


TEXT = "h1,h2,h3,p,a,th,td,summary,strong,span,code,em,dt,dd,i"
# Of what a selector finds: the contrast with its ground, where it is below a limit.
CONTRAST = """([selector, property, limit]) => {
  const light = c => { const f = c.map(v => { v /= 255;
    return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
  const parse = t => (t.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const opaque = t => { const c = parse(t); return c.length < 4 || c[3] > 0; };
  const ground = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (opaque(c)) return parse(c).slice(0, 3); } return [255, 255, 255]; };
  // A number within a bar stands on the bar.
  const under = e => { const b = e.getBoundingClientRect();
    const svg = e.closest('svg'); if (!svg || e.tagName != 'text') return null;
    const bars = [...svg.querySelectorAll('.mark-rect path')].filter(p => {
      const r = p.getBoundingClientRect(); return r.left <= b.left && r.right >= b.right
        && r.top <= b.top + b.height / 2 && r.bottom >= b.bottom - b.height / 2; });
    return bars.length ? parse(getComputedStyle(bars[bars.length - 1]).fill).slice(0, 3) : null; };
  const colour = e => property ? getComputedStyle(e)[property]
    : e.tagName == 'path' ? getComputedStyle(e).fill : getComputedStyle(e).backgroundColor;
  const shown = e => { const r = e.getBoundingClientRect(); return r.width > 1 && r.height > 1; };
  const faint = e => e.tagName == 'path' && +getComputedStyle(e).opacity < 1;
  const own = e => property ? e.textContent.trim() : true;
  return [...document.querySelectorAll(selector)]
    .filter(e => shown(e) && own(e) && !faint(e) && opaque(colour(e)))
    .map(e => { const a = light(parse(colour(e)).slice(0, 3));
      const b = light(under(e) || ground(property ? e : e.parentElement));
      return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.textContent.slice(0, 30)]; })
    .filter(([ratio]) => ratio < limit);
}"""
