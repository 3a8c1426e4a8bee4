"""The windows of an event time in SQL, worked out apart from the transforms.

A window is known by its number on its grid, ``wid``; ``wend_us`` is its end. Times are measured in
the units of the grid: microseconds from the origin, or local days, weeks, months. What is counted
per window is the business of the questions.

What a local clock shows is asked once for each second that has rows, not for each row: clocks
change at whole seconds, and rows are many. A day begins at the first instant that has its date;
where a clock skipped from before a midnight to after it (Toronto in 1919), it is off by the skip.
"""
# ruff: noqa: S608 (identifiers are quoted)

from typing import Final

from expectations.stored import literal
from transforms.spec import WindowSpec

_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_SECOND_US: Final = 1_000_000
_MINUTE_US: Final = 60_000_000
_DAY_US: Final = 86_400_000_000


def floored(number: str, by: int) -> str:
    """Return an SQL expression of floor division, right for negative numbers too."""
    return f"(({number}) // {by} - (({number}) % {by} < 0)::bigint)"


def in_windows(source: str, window: WindowSpec, columns: str) -> str:
    """Return a query for rows and windows: ``columns``, ``wid``, ``wend_us``; a row may repeat.

    ``source`` has ``event_us``.
    """
    if window.kind == "fixed":
        return _of_rows(source, window, columns)
    second = floored("event_us", _SECOND_US)
    seconds = f"(select distinct {second} * {_SECOND_US} as event_us from {source})"
    find = _on_the_local_clock if window.unit == "local" else _of_rows
    return f"""
      select {columns}, wid, wend_us from {source} join (
        select event_us // {_SECOND_US} as second, wid, wend_us
        from ({find(seconds, window, "event_us")})
      ) on second = {second}"""


def _of_rows(source: str, window: WindowSpec, columns: str) -> str:
    every, length = _steps(window)
    spots = f"(select {columns}, {_spot(window)} as spot from {source})"
    if every == length:
        number = floored("spot", every)
        return f"select {columns}, {number} as wid, {_end(window, 'wid')} as wend_us from {spots}"
    layers = -(-length // every)
    number = f"{floored('spot', every)} - layer"
    return f"""
      select {columns}, {number} as wid, {_end(window, "wid")} as wend_us from {spots}
      cross join range({layers}) as layers(layer)
      where ({number}) * {every} + {length} > spot
      """


def _spot(window: WindowSpec) -> str:
    """Return SQL for the unit that an event time is in; a day that has begun does not end again.

    So after midnight the clock may go back to the evening, and it is the new day still.
    """
    spot = position(window, "event_us")
    if window.kind == "fixed" or window.zone == "UTC":
        return spot
    return f"{spot} + (event_us >= {_boundary(window, f'({spot} + 1)')})::bigint"


def numbered(window: WindowSpec, start_us: str) -> str:
    """Return an SQL expression for the number of the window that starts at an instant."""
    if window.unit == "local":
        return start_us
    return floored(position(window, start_us), _steps(window)[0])


def position(window: WindowSpec, us: str) -> str:
    """Return an SQL expression for an instant in the units of the grid."""
    if window.kind == "fixed":
        return f"({us} - {window.origin_us})"
    local = _local(window, us)
    if window.unit in _MONTHS:
        months = f"((year({local}) - 1970) * 12 + month({local}) - 1)"
        return floored(months, _MONTHS[str(window.unit)])
    days = f"date_diff('day', DATE '1970-01-01', {local}::date)"
    return floored(f"{days} - 4", 7) if window.unit == "week" else days


def start_of(window: WindowSpec, number: str) -> str:
    """Return an SQL expression for the instant a numbered window starts at."""
    return (
        number if window.unit == "local" else _boundary(window, f"({number} * {_steps(window)[0]})")
    )


def _steps(window: WindowSpec) -> tuple[int, int]:
    if window.kind == "fixed":
        return window.every_us, window.length_us
    return window.every_count, window.count


def _local(window: WindowSpec, us: str) -> str:
    return f"timezone({literal(window.zone)}, make_timestamptz({us}))"


def _end(window: WindowSpec, number: str) -> str:
    every, length = _steps(window)
    return _boundary(window, f"({number} * {every} + {length})")


def _boundary(window: WindowSpec, units: str) -> str:
    """Return the instant of a number of units since the start of the grid.

    Of a midnight that comes twice DuckDB takes the second; the day begins with the first, which the
    offset of the day before finds.
    """
    if window.kind == "fixed":
        return f"{units} + {window.origin_us}"
    midnight = f"(TIMESTAMP '1970-01-01' + {_passed(window, units)})"
    found = f"epoch_us(timezone({literal(window.zone)}, {midnight}))"
    if window.zone == "UTC":
        return found
    eve = f"({found} - {_DAY_US})"
    first = f"(epoch_us({midnight}) - (epoch_us({_local(window, eve)}) - {eve}))"
    is_that_day = f"{_local(window, first)} >= {midnight}"
    return f"(case when {is_that_day} then least({found}, {first}) else {found} end)"


def _passed(window: WindowSpec, units: str) -> str:
    if window.unit in _MONTHS:
        return f"to_months(({units} * {_MONTHS[str(window.unit)]})::integer)"
    return f"to_days(({units}{' * 7 + 4' if window.unit == 'week' else ''})::integer)"


def _on_the_local_clock(source: str, window: WindowSpec, columns: str) -> str:
    """Windows of a part of an hour, cut where the clock changes.

    Clocks change at whole minutes; until 1935 a few did so at odd seconds (St John's at 03:30:52),
    and a window cut by one of these changes is off by less than a minute here. Those of an hour
    that comes twice differ by their instant.
    """
    into = f"((event_us + {_offset(window, 'event_us')}) % {window.length_us} + {window.length_us})"
    minutes = f"list_transform(range(0, 62), lambda m: (start // {_MINUTE_US} + m) * {_MINUTE_US})"
    same = f"{_offset(window, 't')} = own"
    cut_start = f"list_min(list_filter({minutes}, lambda t: t <= event_us and {same}))"
    cut_end = f"list_min(list_filter({minutes}, lambda t: t > event_us and not {same}))"
    starts = f"case when {_offset(window, 'start')} = own then start else {cut_start} end"
    ends = f"case when {_offset(window, 'stop - 1')} = own then stop else {cut_end} end"
    return f"""
      select {columns}, {starts} as wid, {ends} as wend_us from (
        select *, start + {window.length_us} as stop from (
          select *, event_us - {into} % {window.length_us} as start,
            {_offset(window, "event_us")} as own
          from {source}))"""


def _offset(window: WindowSpec, us: str) -> str:
    return f"(epoch_us({_local(window, us)}) - ({us}))"
