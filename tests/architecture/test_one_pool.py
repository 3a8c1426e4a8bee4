"""Work runs side by side in one place, the ordered map; nothing else owns threads or tasks."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("orchestration", "assets", "transforms", "expectations")
HOME = ROOT / "transforms" / "ordering"
OWNING = {"core", "coroutines", "threads"}
OTHERS = sorted(
    path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if not (path.parent == HOME and path.stem in OWNING)
)
POOLS = {"concurrent", "multiprocessing", "_thread", "joblib"}
STARTERS = {
    *("Thread", "Timer", "ThreadPoolExecutor", "ProcessPoolExecutor", "ThreadPool", "Pool"),
    *("create_task", "ensure_future", "gather", "TaskGroup", "to_thread", "run_in_executor"),
    *("start_new_thread", "fork", "forkserver"),
}
OWNERS = {"threading", "asyncio", "os", "futures", "loop"}


def starts_of(source: str) -> list[str]:
    """What in a module starts threads, processes or tasks of its own."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in POOLS]
        elif isinstance(node, ast.ImportFrom) and node.module:
            is_pool = node.module.split(".")[0] in POOLS
            found += [a.name for a in node.names if is_pool or is_starter(node.module, a.name)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found += [node.attr] if is_starter(node.value.id, node.attr) else []
    return found


def is_starter(owner: str, name: str) -> bool:
    return owner in OWNERS and name in STARTERS


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_but_the_ordered_map_owns_a_pool(path: Path) -> None:
    assert starts_of(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "from concurrent.futures import ThreadPoolExecutor",
        "import concurrent.futures as cf",
        "import multiprocessing.pool",
        "from threading import Thread",
        "import threading\nthreading.Thread(target=print).start()",
        "import asyncio\nasyncio.create_task(work())",
        "from asyncio import TaskGroup",
        "import os\nos.fork()",
    ],
)
def test_a_pool_is_found_however_it_is_written(source: str) -> None:
    assert starts_of(source)


@pytest.mark.parametrize("source", ["import threading\nlocal = threading.local()", "pl.gather(1)"])
def test_what_starts_nothing_is_allowed(source: str) -> None:
    assert not starts_of(source)
