"""The guide to stream specs tells what the code does: its examples are read, its messages real."""

import re
from pathlib import Path

import pytest

from transforms.spec import SpecError, load_spec
from transforms.spec.words import ALLOWED

GUIDE = (Path(__file__).parents[2] / "docs" / "declare-a-stream.md").read_text(encoding="utf-8")
FILE = "streams/river_gauges.yaml"
SECTION = re.compile(r"^(\w+):.*?(?=^\w|\Z)", re.MULTILINE | re.DOTALL)
WHOLE, *FRAGMENTS = re.findall(r"```yaml\n(.*?)```(?:\n\n```text\n(.*?)```)?", GUIDE, re.DOTALL)
EXAMPLES = [fragment for fragment, messages in FRAGMENTS if not messages]
MISTAKES = [(fragment, messages) for fragment, messages in FRAGMENTS if messages]


def with_fragment(fragment: str) -> str:
    """The whole file of the guide, with the sections of a fragment in place of its own."""
    sections = {match[1]: match[0] for match in SECTION.finditer(WHOLE[0])}
    sections |= {match[1]: match[0] for match in SECTION.finditer(fragment)}
    return "".join(sections.values())


def test_the_whole_file_is_a_spec() -> None:
    spec = load_spec(WHOLE[0], file=FILE)
    assert spec.name == "river_gauges"


@pytest.mark.parametrize("fragment", EXAMPLES)
def test_each_example_is_good(fragment: str) -> None:
    aggregates = "aggregates: {stage_m: [mean]}\n"
    load_spec(with_fragment(aggregates + fragment), file=FILE)


@pytest.mark.parametrize(("fragment", "messages"), MISTAKES)
def test_each_mistake_gives_the_messages_printed(fragment: str, messages: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(with_fragment(fragment), file=FILE)
    assert f"{caught.value}\n" == messages


def test_the_guide_shows_examples_and_mistakes() -> None:
    assert len(EXAMPLES) >= 2
    assert len(MISTAKES) >= 9


@pytest.mark.parametrize("field", sorted(ALLOWED))
def test_the_guide_names_every_field(field: str) -> None:
    assert re.search(rf"\b{field}\b", GUIDE)
