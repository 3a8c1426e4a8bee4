"""A few of the kills of `kill_anywhere`, which does as many as it is told."""

from pathlib import Path

from end_to_end.kill_anywhere import kill_and_compare

KILLS = 3


def test_a_run_after_a_kill_gives_what_an_undisturbed_run_gives(tmp_path: Path) -> None:
    struck = kill_and_compare(tmp_path, KILLS, seed=3, chunks=(None,))
    assert struck.total() == KILLS
