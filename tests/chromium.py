"""Debian's Chromium without a screen, for the tests of what people look at, and their pictures.

Pictures are in `data/pictures`, or where LOWWATER_PICTURES says.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

_PICTURES = Path(os.environ.get("LOWWATER_PICTURES", "data/pictures"))
# It asks nobody but the page that it is given.
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that is closed in the end."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "these tests need chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_QUIET))
        yield browser
        browser.close()


def picture(tab: Any, name: str, *, full_page: bool = False) -> None:
    """Keep what a tab shows."""
    _PICTURES.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=_PICTURES / f"{name}.png", full_page=full_page)
