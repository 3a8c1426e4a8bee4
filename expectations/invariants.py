"""The catalogue of invariants: what must hold of a stream, in sentences.

Here belongs what is promised, why it matters, and what to do when it fails. How violations are
counted is in ``evidence``, in a function for each name; docs/invariants.md is made from this file.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from transforms.schemas import (
    AMENDED_WINDOWS,
    DEAD_LETTERS,
    DUPLICATES,
    HELD_EVENTS,
    ORDER_AUDIT,
    ORDERED_EVENTS,
    REJECTED_ROWS,
    STAGED_EVENTS,
    TARGET_PARITY,
    WATERMARKS,
    WINDOW_AGGREGATES,
)
from transforms.spec import StreamSpec

Severity = Literal["error", "warning"]
Axis = Literal["arrival", "event"]


@dataclass(frozen=True)
class Invariant:
    """A sentence that is true when all is well.

    ``broken`` says what is wrong when it is not. ``asset`` is what it is about, and the table whose
    rows there must be evidence of. ``subject`` says what a row of its evidence stands for.
    ``blocking`` holds back what builds on the asset.
    """

    name: str
    sentence: str
    broken: str
    asset: str
    why: str
    remedy: str
    severity: Severity = "error"
    blocking: bool = True
    axis: Axis = "arrival"
    subject: str = "key"

    def what_to_do(self, spec: StreamSpec, since: str) -> str:
        """Return the remedy for a stream, or a track of one, from a partition on."""
        of_files = self.remedy.replace("run STREAM", f"run {spec.staged_as}")
        return _PARTITION.sub(since, of_files.replace("STREAM", spec.name))


_PARTITION: Final = re.compile(r"\bP\b")
_AGAIN: Final = "Compute it and all after it anew from the files: `lowwater run STREAM --from P`"
_REPAIR: Final = (
    "`lowwater parity STREAM` shows what differs, and why;"
    " `lowwater parity STREAM --repair` sends it again."
)
_REPUBLISH: Final = (
    "Compute its windows anew: `lowwater ui`, asset `STREAM/amended_windows`, materialize P. What"
    " stays was altered behind our back: restore the lake (docs/operate.md)."
)

STAGING: Final = (
    Invariant(
        name="every_row_that_was_read_is_staged_once",
        sentence="Every row that was read is staged or rejected, once, and none was added.",
        broken="Rows of a file were lost or doubled when it was staged.",
        asset=STAGED_EVENTS,
        why="What staging loses or doubles, no later stage can know of.",
        remedy=_AGAIN,
        subject="source file",
    ),
    Invariant(
        name="every_row_is_staged_where_it_arrived",
        sentence="Every staged row arrived within its partition.",
        broken="Rows are staged in a partition in which they did not arrive.",
        asset=STAGED_EVENTS,
        why="A row in another partition is judged against a watermark of another time.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="every_rejected_row_says_why",
        sentence="Every rejected row keeps its text and place, and has a reason that is known.",
        broken="Rejected rows lack their text, their place or a known reason.",
        asset=REJECTED_ROWS,
        why="Without its text and a reason a rejected row cannot be mended and sent again.",
        remedy=_AGAIN,
        blocking=False,
        subject="source file",
    ),
)

REORDER: Final = (
    Invariant(
        name="every_row_is_accounted_for",
        sentence="Staged and held rows are ordered, dead letters, duplicates or held, unchanged.",
        broken="Rows were lost, doubled or altered between staging and release.",
        asset=ORDERED_EVENTS,
        why="A row that is lost, doubled or altered on the way makes every window of it wrong.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="released_events_are_in_order_per_key",
        sentence="The released rows of a key are stored in order of event time and `seq`.",
        broken="Released rows of a key are stored out of order.",
        asset=ORDERED_EVENTS,
        why="Whoever reads the ordered stream relies on its order and does not sort again.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="every_released_event_is_due",
        sentence="Every row is released in the partition in which the watermark passed it.",
        broken="Rows were released too early or too late for their watermark.",
        asset=ORDERED_EVENTS,
        why="A row released too early or too late breaks the order across partitions.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="no_event_counts_twice",
        sentence="No event is among the rows that count more than once, in any partition.",
        broken="Events count more than once.",
        asset=ORDERED_EVENTS,
        why="An event that counts twice adds to every sum and count twice.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="no_held_event_is_due",
        sentence="Every held row is at or after the watermark of its key.",
        broken="Rows are held back although the watermark has passed them.",
        asset=HELD_EVENTS,
        why="A window may close without a row that is held although it is due.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="every_dead_letter_has_a_known_reason",
        sentence="Every dead letter has a reason of the contract, and its numbers of windows fit.",
        broken="Dead letters have no known reason, or windows that cannot be.",
        asset=DEAD_LETTERS,
        why="The reason decides whether windows count the row; another word counts nowhere.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="every_dead_letter_is_justified",
        sentence="What every dead letter says of itself bears out its reason.",
        broken="Dead letters were refused without cause.",
        asset=DEAD_LETTERS,
        why="A row refused without cause is missing in the ordered stream.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="every_duplicate_repeats_a_counted_row",
        sentence="Every duplicate names a row that counts, with its key and event time.",
        broken="Duplicates repeat nothing that counts: rows may be lost.",
        asset=DUPLICATES,
        why="A duplicate of nothing is a row that was lost.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="the_watermark_never_falls",
        sentence="The watermark of a key is never below that of the partition before.",
        broken="Watermarks went back in time.",
        asset=WATERMARKS,
        why="A watermark that falls opens windows again that were published.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="the_watermark_is_earned",
        sentence="The watermark of a key is where its rows, its grace and its silence put it.",
        broken="Watermarks stand where their rows do not put them.",
        asset=WATERMARKS,
        why="Too high, it refuses rows that are in time; too low, it holds windows back.",
        remedy=f"If the numbers of its profile changed since, it is no fault. {_AGAIN}",
    ),
)

WINDOWS: Final = (
    Invariant(
        name="no_window_is_published_before_its_watermark",
        sentence="Every window is first published in the partition in which the watermark ends it.",
        broken="Windows were published before they were closed, or too late.",
        asset=WINDOW_AGGREGATES,
        why="A window published too early is wrong as soon as it is out.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="every_window_counts_its_rows",
        sentence="Every first publication counts the rows that came while its window was open.",
        broken="Windows were first published with a wrong number of rows.",
        asset=WINDOW_AGGREGATES,
        why="A count that is off means that statistics were made of other rows.",
        remedy=_AGAIN,
    ),
    Invariant(
        name="every_window_agrees_with_itself",
        sentence="Counts, fractions, extremes and times of every window fit each other.",
        broken="Windows hold numbers that contradict each other.",
        asset=WINDOW_AGGREGATES,
        why="Numbers that contradict each other cannot all be true.",
        remedy=_AGAIN,
    ),
)

RECONCILE: Final = (
    Invariant(
        name="revisions_have_no_gaps",
        sentence="The revisions of every window are 0, 1, 2 and so on, each of them once.",
        broken="Revisions of windows are missing or doubled.",
        asset=AMENDED_WINDOWS,
        why="A gap or a second revision of one number leaves two answers to what was said when.",
        remedy=_REPUBLISH,
        blocking=False,
        axis="event",
    ),
    Invariant(
        name="every_window_equals_a_plain_group_by",
        sentence="Every closed window is what a plain GROUP BY over all valid rows gives.",
        broken="Published windows are not what their rows give.",
        asset=AMENDED_WINDOWS,
        why="It is the promise of the platform: late rows and repeats change nothing in the end.",
        remedy=_REPUBLISH,
        axis="event",
    ),
    Invariant(
        name="the_target_holds_what_was_published",
        sentence="The target holds the newest revision of every window, and nothing else.",
        broken="The target does not hold what was published.",
        asset=AMENDED_WINDOWS,
        why="People read the target, not the lake.",
        remedy=_REPAIR,
        blocking=False,
        axis="event",
    ),
)

AUDITS: Final = (
    Invariant(
        name="no_same_key_pair_is_inverted",
        sentence="Rows of one key were released, and batches of one lane landed, in their order.",
        broken="Rows of a key, or batches of a lane, came the wrong way round.",
        asset=ORDER_AUDIT,
        why="Whoever follows a key or a window sees it go back in time. Other pairs may swap.",
        remedy=_AGAIN,
        subject="order",
    ),
    Invariant(
        name="the_target_equals_the_lake_to_the_bit",
        sentence="The newest revision of every window is proved to be in the target, to the bit.",
        broken="The target is not proved to hold what was published.",
        asset=TARGET_PARITY,
        why="People read the target, not the lake; a proof sees what a comparison rounds away.",
        remedy=_REPAIR,
        axis="event",
        subject="finding",
    ),
)

NEWS: Final = (
    Invariant(
        name="rows_keep_coming",
        sentence="The newest row is no older than the stream allows (`alerts.stale_after`).",
        broken="Nothing arrives any more.",
        asset=STAGED_EVENTS,
        why="Numbers that are right grow old without a word when nothing comes any more.",
        remedy="See whether the source still delivers: `lowwater check STREAM`",
        severity="warning",
        blocking=False,
        subject="stream",
    ),
    Invariant(
        name="dead_letters_stay_below_the_alert",
        sentence="The share of dead letters among arrived rows is at most the alert level.",
        broken="There are too many dead letters.",
        asset=DEAD_LETTERS,
        why="Many dead letters: the grace is too short for a link, or a link is in trouble.",
        remedy="See which profile is late; `lowwater grace STREAM` says what another grace gives.",
        severity="warning",
        blocking=False,
    ),
    Invariant(
        name="clocks_are_right",
        sentence="No key sends more than 2 % of its rows from the future.",
        broken="Clocks of devices run ahead.",
        asset=DEAD_LETTERS,
        why="Rows of a clock that runs ahead count nowhere.",
        remedy="Set the clock of the device; its refused rows can be sent again with right times.",
        severity="warning",
        blocking=False,
    ),
    Invariant(
        name="every_key_is_heard",
        sentence="No key has just fallen silent, and the partition is not empty.",
        broken="Keys fell silent, or a whole partition is empty.",
        asset=WATERMARKS,
        why="A silent key publishes no windows: it is missed only if someone says so.",
        remedy="See whether the device or its link is down, or whether a file is missing.",
        severity="warning",
        blocking=False,
    ),
)

CATALOGUE: Final = (*STAGING, *REORDER, *WINDOWS, *RECONCILE, *AUDITS, *NEWS)
BY_NAME: Final = {invariant.name: invariant for invariant in CATALOGUE}


def as_markdown() -> str:
    """Return docs/invariants.md."""
    blocks = [_HEAD, *(_section(title, listed) for title, listed in _SECTIONS)]
    return "\n".join(blocks)


_HEAD: Final = """# What must hold

Made from `expectations/invariants.py` by `python -m expectations.invariants`; do not edit it here.
Every sentence is a check in Dagster. An *error* means that published numbers may be wrong; a
*warning* is news about the source. A *blocking* check holds back what builds on the asset.
"""
_SECTIONS: Final = (
    ("Staging", STAGING),
    ("Reorder", REORDER),
    ("Windows", WINDOWS),
    ("Reconciliation and target", RECONCILE),
    ("Audits", AUDITS),
    ("News", NEWS),
)


def _section(title: str, invariants: tuple[Invariant, ...]) -> str:
    return "\n".join([f"## {title}\n", *(_entry(invariant) for invariant in invariants)])


def _entry(invariant: Invariant) -> str:
    stops = "blocking" if invariant.blocking else "not blocking"
    return (
        f"### {invariant.name}\n\n**{invariant.sentence}**\n\n"
        f"`{invariant.asset}`, per {invariant.axis} partition and {invariant.subject}; "
        f"{invariant.severity}, {stops}.\n\n{invariant.why}\n\n"
        f"If it fails: {invariant.broken} {invariant.remedy}\n"
    )


if __name__ == "__main__":
    print(as_markdown(), end="")  # noqa: T201 - it is what this module prints
