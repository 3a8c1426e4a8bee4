"""Source files are read and parsed side by side, in a bounded window, and come in source order."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from small_stream import MINUTES, SPEC_TEXT

from assets.stores.intake import Intake
from assets.stores.lake import Lake
from assets.stores.sources import files
from assets.stores.sources.files import FileRead, read_files
from transforms.spec import StreamSpec, load_spec

WORKERS = 3
MANY = 20


@pytest.fixture
def spec() -> StreamSpec:
    text = SPEC_TEXT.replace("WINDOWS", MINUTES).replace("unit: iso8601", "unit: s")
    return load_spec(text, file="gauges.yaml")


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Files of one row each, after a first one that takes far longer than the others."""
    for number in range(MANY):
        row = {"station": "a", "sampled_at": number, "received_at": number, "level": 1.0}
        times = 20_000 if number == 0 else 1
        (tmp_path / f"{number:02}.ndjson").write_text((json.dumps(row) + "\n") * times)
    return [f"{number:02}.ndjson" for number in range(MANY)]


def test_a_slow_first_file_still_comes_first(
    spec: StreamSpec, names: list[str], tmp_path: Path
) -> None:
    reads = list(read_files(spec, names, data_dir=tmp_path, workers=WORKERS))
    assert [read.name for read in reads] == names
    assert [read.staged["event_us"][0] for read in reads] == [n * 10**6 for n in range(MANY)]


def test_as_many_files_as_there_are_workers_are_read_at_once(
    spec: StreamSpec, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting, read_file = threading.Barrier(WORKERS, timeout=10), files.read_file

    def meet(*given: Any, **named: Any) -> FileRead:
        meeting.wait()  # breaks unless so many are read at once
        return read_file(*given, **named)

    monkeypatch.setattr(files, "read_file", meet)
    some = names[: 4 * WORKERS]
    reads = list(read_files(spec, some, data_dir=tmp_path, workers=WORKERS))
    assert [read.name for read in reads] == some


def test_the_blocks_of_one_large_file_are_parsed_at_once_and_joined_in_order(
    spec: StreamSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"station": "a", "sampled_at": number, "received_at": number, "level": 1.0}
        for number in range(60)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "large.ndjson").write_text(text)
    # Six blocks of ten lines, as two workers meet in pairs.
    monkeypatch.setattr("assets.stores.sources.blocks.CHUNK_BYTES", len(text) // 6)
    monkeypatch.setattr("assets.stores.sources.blocks.BLOCK_BYTES", len(text) // 6)
    meeting, read_block = threading.Barrier(2, timeout=10), files._read_block

    def meet(*given: Any) -> Any:
        if threading.current_thread() is not threading.main_thread() and not done.is_set():
            meeting.wait()
            done.set()
        return read_block(*given)

    done = threading.Event()
    monkeypatch.setattr(files, "_read_block", meet)
    [read] = read_files(spec, ["large.ndjson"], data_dir=tmp_path, workers=2)
    assert done.is_set()
    assert read.staged["event_us"].to_list() == [number * 10**6 for number in range(60)]
    assert read.staged["seq"].to_list() == list(range(60))


def test_reading_never_runs_further_ahead_than_its_window(
    spec: StreamSpec, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, taken, ahead, read_file = [0], 0, [0], files.read_file

    def count(*given: Any, **named: Any) -> FileRead:
        begun[0] += 1
        ahead.append(begun[0] - taken)
        return read_file(*given, **named)

    monkeypatch.setattr(files, "read_file", count)
    for _ in read_files(spec, names, data_dir=tmp_path, workers=WORKERS):
        taken += 1
    assert begun == [MANY]
    # One more than the window: the file that the consumer has in hand is not yet counted as taken.
    assert max(ahead) <= 2 * WORKERS + 1


def test_beyond_a_bound_of_rows_what_was_read_waits_on_disk(
    spec: StreamSpec, names: list[str], tmp_path: Path
) -> None:
    pieces = []
    for rows_in_memory in (10**9, 10, 0):
        lake = Lake(str(tmp_path / f"lake-{rows_in_memory}"))
        intake = Intake(lake, tmp_path, spec, rows_in_memory)
        found = intake.survey()
        assert sum(kept.rows for kept in intake._kept.values()) <= rows_in_memory
        pieces.append([intake.piece(file, 0, 10**12).staged for file in found])
        intake.forget(found)
    assert [file.name for file in found] == names
    for others in pieces[1:]:
        assert all(one.equals(other) for one, other in zip(pieces[0], others, strict=True))
