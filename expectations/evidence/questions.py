"""Which question gathers the evidence of which invariant."""

from collections.abc import Callable, Mapping
from typing import Final

import polars as pl

from expectations.evidence import (
    audits,
    books,
    history,
    identities,
    news,
    oracle,
    reorder,
    staging,
    watermarks,
    windows,
)
from expectations.stored import Opened

Question = Callable[[Opened], pl.DataFrame]

QUESTIONS: Final[Mapping[str, Question]] = {
    "every_row_that_was_read_is_staged_once": staging.rows_of_files,
    "every_row_is_staged_where_it_arrived": staging.arrivals,
    "every_rejected_row_says_why": staging.rejections,
    "every_row_is_accounted_for": books.balance,
    "released_events_are_in_order_per_key": reorder.order,
    "every_released_event_is_due": reorder.released,
    "no_event_counts_twice": identities.counted_once,
    "no_held_event_is_due": reorder.held,
    "every_dead_letter_has_a_known_reason": reorder.reasons,
    "every_dead_letter_is_justified": reorder.causes,
    "every_duplicate_repeats_a_counted_row": identities.repeats,
    "the_watermark_never_falls": watermarks.falls,
    "the_watermark_is_earned": watermarks.earned,
    "no_window_is_published_before_its_watermark": windows.due,
    "every_window_counts_its_rows": windows.row_counts,
    "every_window_agrees_with_itself": windows.agreement,
    "revisions_have_no_gaps": history.revisions,
    "every_window_equals_a_plain_group_by": oracle.group_by,
    "the_target_holds_what_was_published": history.target,
    "no_same_key_pair_is_inverted": audits.orders,
    "the_target_equals_the_lake_to_the_bit": audits.proofs,
    "rows_keep_coming": news.freshness,
    "dead_letters_stay_below_the_alert": news.dead_letter_share,
    "clocks_are_right": news.clocks,
    "every_key_is_heard": news.silence,
}
