"""The commands of docs/audit-order.md, run as they stand there, print what stands there."""

import re
from pathlib import Path

import pytest

from orchestration.cli import main

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "audit-order.md").read_text()
COMMANDS = re.findall(r"```console\n\$ lowwater (.+)\n((?:.*\n)*?)```", GUIDE)
# The queue, its inverted pairs when handed out, begun and landed, and those of one entity landed.
RUNS = {
    "four_workers": (0, 0, 17, 8),
    "four_at_a_time": (0, 53, 57, 6),
    "one_at_a_time_per_entity": (39, 39, 40, 0),
}


@pytest.mark.parametrize(("words", "shown"), COMMANDS)
def test_a_command_prints_what_the_guide_shows(
    words: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    code = main(words.split())
    said = capsys.readouterr().out
    assert said == shown
    assert code == ("out of order" in said)


def test_the_guide_shows_commands() -> None:
    assert len(COMMANDS) == 2


@pytest.mark.parametrize("run", RUNS)
def test_the_sample_runs_have_the_counts_that_are_known_of_them(
    run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    orders = ("handed_out", "begun", "landed")
    main(["audit-order", f"samples/queue/{run}.csv", "--key", "entity", "--order", *orders])
    table = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    rows = {row[0]: row for row in table if row[0] in orders}
    counts = [int(rows[order][1]) for order in orders]
    assert (*counts, int(rows["landed"][4])) == RUNS[run]
