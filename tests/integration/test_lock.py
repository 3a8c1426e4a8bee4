"""One writer per stream: the second waits or says who is in the way; the dead bar nobody."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assets.stores.lock import LockHeld, StreamLock

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from assets.stores.lock import StreamLock
with StreamLock(Path(sys.argv[1]), "river")():
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_second_writer_is_told_who_is_the_first(tmp_path: Path) -> None:
    lock = StreamLock(tmp_path, "river", patience_s=0.1)
    with another_process(tmp_path) as process:
        wanted = f"river is being written by process {process.pid} on .* since 20.*: -c"
        with pytest.raises(LockHeld, match=wanted), lock():
            pytest.fail("two writers")


def test_the_second_writer_waits_and_says_so_once(tmp_path: Path) -> None:
    told: list[str] = []
    with another_process(tmp_path) as process:

        def wait(message: str) -> None:
            told.append(message)
            assert process.stdin is not None
            process.stdin.close()

        with StreamLock(tmp_path, "river", waiting=wait)():
            pass
    assert len(told) == 1


def test_a_killed_writer_bars_nobody(tmp_path: Path) -> None:
    with another_process(tmp_path) as process:
        process.kill()
        process.wait()
        with StreamLock(tmp_path, "river", patience_s=5)():
            pass


def test_streams_do_not_bar_each_other(tmp_path: Path) -> None:
    with another_process(tmp_path), StreamLock(tmp_path, "lake_levels", patience_s=0)():
        pass


def test_a_thread_may_take_its_own_lock_again_and_keeps_it_until_the_last_release(
    tmp_path: Path,
) -> None:
    lock = StreamLock(tmp_path, "river", patience_s=0)
    with lock():
        with lock():
            pass
        failures: list[LockHeld] = []

        def try_it() -> None:
            try:
                with lock():
                    pass
            except LockHeld as error:
                failures.append(error)

        other = threading.Thread(target=try_it)
        other.start()
        other.join()
    assert len(failures) == 1
    with lock():
        pass
