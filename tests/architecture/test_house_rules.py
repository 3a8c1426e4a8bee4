"""The rules of the house that no linter knows: sizes, docstrings, names, who may import whom."""

import ast
import statistics
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("orchestration", "assets", "transforms", "expectations")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
TOP_LEVEL = {
    *("pyproject.toml", "orchestration", "assets", "transforms", "expectations", "tests"),
    *("workspace.yaml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile"),
    *("requirements.lock", "streams", "samples", "benchmarks", "deploy", "docs"),
    *(".ci", ".git", ".gitignore"),
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions_of(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, FUNCTION)]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its decorators and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_and_says_what_belongs_here(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), "no module docstring"
    assert text.count("\n") <= 400


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_function_is_longer_than_a_screen(path: Path) -> None:
    long = [f.name for f in functions_of(path) if (f.end_lineno or 0) - f.lineno >= 60]
    assert not long


def test_half_of_all_functions_have_fewer_than_ten_lines() -> None:
    sizes = [body_lines(function) for path in MODULES for function in functions_of(path)]
    assert statistics.median(sizes) < 10


def test_no_exception_is_swallowed() -> None:
    handlers = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and all(isinstance(x, ast.Pass) for x in node.body)
    ]
    assert not handlers


def test_a_check_knows_only_the_words_and_the_spec_of_the_transforms() -> None:
    allowed = {"transforms.schemas", "transforms.spec", "transforms.errors"}
    imported = {
        node.module
        for path in (ROOT / "expectations").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert {name for name in imported if name.startswith("transforms")} <= allowed


def test_file_stems_of_tests_are_unique_and_tests_are_no_package() -> None:
    stems = Counter(path.stem for path in (ROOT / "tests").rglob("*.py"))
    assert [stem for stem, count in stems.items() if count > 1] == []
    assert "__init__" not in stems


def test_nothing_stands_at_the_top_level_but_what_is_agreed() -> None:

    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split("/")[0] for line in listed.splitlines()} <= TOP_LEVEL


def test_the_lock_pins_with_hashes_and_names_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    pins = [line for line in lock.splitlines() if "==" in line and not line.startswith("    #")]
    assert pins
    assert all(line.rstrip().endswith("\\") for line in pins)
