"""The progress bar: steps, rows and the time to come, on a terminal alone."""

from io import StringIO

import pytest
from rich.console import Console

from orchestration.commands.progress import bar, progress_bar, watcher_of


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def drawn(monkeypatch: pytest.MonkeyPatch, *rows: tuple[str, int, int]) -> str:
    """What stands on the terminal after a few steps and counts of rows."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    progress = bar(terminal)
    watcher = watcher_of(progress)
    watcher.expect("arrivals", 12)
    watcher.step()
    for told in rows:
        watcher.rows(*told)
    console = Console(file=terminal, width=120)
    console.print(progress.get_renderable())
    return terminal.getvalue()


def test_steps_rows_and_the_time_to_come_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = drawn(monkeypatch, ("publishing", 0, 45_581), ("publishing", 20_000, 45_581))
    assert "arrivals" in shown
    assert "1/12" in shown
    assert "publishing" in shown
    assert "20,000/45,581 rows" in shown
    assert shown.count("ETA") == 2


def test_rows_are_shown_while_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "rows" not in drawn(monkeypatch, ("publishing", 0, 10), ("publishing", 10, 10))
    assert "7 rows" in drawn(monkeypatch, ("proving", 0, 0), ("proving", 7, 0))


def test_nothing_is_drawn_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as watcher:
        watcher.expect("arrivals", 2)
        watcher.rows("publishing", 1, 2)
        watcher.step()
    assert capfd.readouterr() == ("", "")
