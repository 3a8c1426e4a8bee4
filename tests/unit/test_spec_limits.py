"""Bounds of a spec: what a machine could not carry out is told before it tries."""

import pytest
from small_stream import SPEC_TEXT, small_spec

from transforms.spec import SpecError, load_spec


@pytest.mark.parametrize(
    "grid",
    [
        "every: 1us, length: 1d",
        "every: 1s, length: 100001s",
        "every: 1d, length: 100001d, zone: Europe/Berlin",
    ],
)
def test_a_row_may_not_be_in_windows_without_number(grid: str) -> None:
    with pytest.raises(SpecError, match="each row would be in more than 100,000 windows"):
        small_spec(f"  - {{name: rolling, {grid}}}")


@pytest.mark.parametrize("grid", ["every: 1us", "every: 1s, length: 100000s"])
def test_small_steps_are_no_mistake(grid: str) -> None:
    assert small_spec(f"  - {{name: rolling, {grid}}}").windows


def test_a_name_fits_into_the_name_of_a_file() -> None:
    text = SPEC_TEXT.replace("WINDOWS", "  - {name: minute, every: 1m}")
    assert load_spec(text.replace("gauges", "g" * 100), file="x").name == "g" * 100
    with pytest.raises(SpecError, match="at most 100"):
        load_spec(text.replace("gauges", "g" * 101), file="x")
