"""Pictures are drawn whatever a key holds: text that XML has no character for is escaped."""

import polars as pl

from expectations.report.charts import lag
from expectations.report.drawing import in_xml, picture

# Every control character, both ends of the planes, and what a terminal or a page may take amiss.
KEYS = (
    *map(chr, range(32)),
    *("\x7f", "\x85", "\ufffe", "\uffff", "\U0001f701", "<b>", "]]>", "&amp;", "a\x00b", "\\x1b"),
)


def test_a_key_may_hold_any_character() -> None:
    keys = pl.DataFrame({"key": KEYS, "lag_us": range(len(KEYS)), "silent_us": range(len(KEYS))})
    drawn = picture(lag(keys))
    assert drawn.wide.startswith("<svg")
    assert not set(drawn.wide) & {chr(code) for code in range(32)} - set("\t\n\r")
    assert "<b>" not in drawn.wide


def test_characters_that_xml_has_stay_as_they_are() -> None:
    text = "ключ 🜁 \t\n <b>"
    assert in_xml({"key": [text, 1, None]}) == {"key": [text, 1, None]}


def test_two_keys_that_differ_are_two_still() -> None:
    keys = [chr(code) for code in range(32)]
    assert len(set(in_xml(keys))) == len(keys)
    assert in_xml("\x1b[31mred") == "\\x1b[31mred"
