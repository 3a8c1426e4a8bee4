"""The quality page in a real browser: quiet, offline, readable; pictures are kept to be looked at.

Run by `make test-ui`; the pictures are in `data/pictures`, or where LOWWATER_PICTURES says.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from gauges import DAYS, River, event_days, flow

from assets.stored import stored_of
from expectations.invariants import CATALOGUE
from expectations.report.figures import Figures, figures
from expectations.report.page import page
from expectations.report.state import state_of
from expectations.results import Fault, Verdict

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.ui, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

PICTURES = Path(os.environ.get("LOWWATER_PICTURES", "data/pictures"))
HOSTILE = "<img src=x onerror=alert(1)><script>document.title='owned'</script>"
SCREENS = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


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


@pytest.fixture(scope="module")
def pages(
    river: River, numbers: Figures, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A page for each state, one of them with hostile names in it."""
    spoilt = replace(
        numbers,
        lag=numbers.lag.with_columns(key=numbers.lag["key"].replace("mill", HOSTILE)),
        keys=numbers.keys.with_columns(key=numbers.keys["key"].replace("mill", HOSTILE)),
    )
    hostile = river.spec.model_copy(update={"description": HOSTILE})
    news, broken = "clocks_are_right", "every_row_is_accounted_for"
    said = {
        "good": page(river.spec, state_of(verdicts()), numbers, verdicts()),
        "warning": page(river.spec, state_of(verdicts(news)), numbers, verdicts(news)),
        "error": page(hostile, state_of(verdicts(news, broken)), spoilt, verdicts(news, broken)),
        "unknown": page(river.spec, state_of([]), None, []),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, html in said.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in said}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "these tests need chromium: apt-get install chromium"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", ["good", "warning", "error", "unknown"])
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
    PICTURES.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=PICTURES / f"{name}-{screen}-{scheme}.png", full_page=True)
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.title().startswith(name)
    tab.close()


def test_hostile_names_are_shown_and_do_nothing(browser: Any, pages: dict[str, Path]) -> None:
    tab = browser.new_page()
    tab.goto(pages["error"].as_uri())
    assert tab.locator("script, img").count() == 0
    assert tab.get_by_text(HOSTILE, exact=True).count() >= 1
    tab.close()


def test_colours_can_be_told_from_their_ground(browser: Any, pages: dict[str, Path]) -> None:
    """Text has the contrast that WCAG AA asks for, in light and in dark."""
    for scheme in ("light", "dark"):
        tab = browser.new_page(color_scheme=scheme)
        tab.goto(pages["error"].as_uri())
        faint = tab.evaluate(CONTRAST)
        assert faint == [], scheme
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


CONTRAST = """() => {
  const light = c => { const f = c.map(v => { v /= 255;
    return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
  const parse = t => t.match(/[\\d.]+/g).map(Number);
  const ground = e => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  return [...document.querySelectorAll('h1,h2,h3,p,a,th,td,summary,strong,span,code,em')]
    .filter(e => e.innerText && e.innerText.trim() && e.offsetParent)
    .map(e => { const a = light(parse(getComputedStyle(e).color).slice(0, 3)), b = light(ground(e));
      return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.innerText.slice(0, 30)]; })
    .filter(([ratio]) => ratio < 4.5);
}"""
