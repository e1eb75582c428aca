"""Following each vehicle: trips, segments entered, standing still; one function per rule set.

Each returns a table of the valid reports, with columns that depend on the vehicle's reports before
and after:

`first`          the report starts a trip
`entered`        it shows the vehicle in another segment than before, or starts a trip
`standing_at`    its Pos, if it is the fourth or a later one of equal reports; else null
`standing_until` the second at which a standing vehicle no longer counts, for lack of reports
`stands_for`     the number of reports that are summed in `spd`; null if they must be grouped
`repeated`       another report of this second came before, which the rules forbid
"""

from __future__ import annotations

from linearroad.validation.tables import Frame, Workshop

__all__ = ["first_reports", "follow"]

STEP = f"{30 << 32}L"
COUNTED = "vid, xway, dir, seg, lane, time, spd, pos"


def first_reports(shop: Workshop, reports: Frame) -> Frame:
    """Of a vehicle's reports in one second on one expressway, the first."""
    return shop.table(
        f"""
        SELECT {COUNTED} FROM (
            SELECT *, lag(time) OVER (PARTITION BY vid, xway ORDER BY time, place) AS last_time
            FROM {{reports}})
        WHERE last_time IS NULL OR last_time < time
        """,
        reports=reports,
    )


def follow(shop: Workshop, reports: Frame, rules: str) -> Frame:
    """The valid reports, and what each means for its vehicle."""
    if rules == "paper":
        # Repeated reports are rare, so they are detected during the computation, which is then
        # run again without them.
        followed = shop.keep(_paper(shop, reports))
        if not followed.where("repeated").isEmpty():
            followed = shop.keep(_paper(shop, first_reports(shop, reports)))
        return followed
    follow_all = _brandeis if rules == "brandeis" else _walmart
    followed = follow_all(shop, first_reports(shop, reports))
    return shop.keep(followed.selectExpr("*", "CAST(NULL AS int) AS stands_for"))


def _paper(shop: Workshop, reports: Frame) -> Frame:
    """A trip continues exactly 30 s after the last report; vehicles stand in lanes 1 to 3.

    A report's `state` is its Time and, below it, its place. So a vehicle's states order its
    reports, and one is 30 s after another at the same place if their states differ by STEP.
    Twelve million reports are sorted, once, by few and narrow columns.

    A vehicle that reports once or twice in a minute needs no grouping for the minute's statistics:
    of two reports from one segment the first stands for both.
    """
    chained = shop.table(
        """
        SELECT *, lag(state, 1) OVER w AS last, lag(state, 2) OVER w AS second_last,
               lag(state, 3) OVER w AS third_last, lag(cell) OVER w AS last_cell,
               lead(state, 1) OVER w AS next, lead(state, 2) OVER w AS second_next,
               lead(cell) OVER w AS next_cell, lead(spd) OVER w AS next_spd
        FROM (SELECT vid, xway, dir * 100 + seg AS cell, spd,
                     shiftleft(CAST(time AS bigint), 32) + (lane * 2 + dir) * 528000 + pos AS state
              FROM {reports})
        WINDOW w AS (PARTITION BY vid, xway ORDER BY state)
        """,
        reports=reports,
    ).selectExpr(
        "vid", "xway", "cell", "spd", "state", "next_spd",
        f"CAST({_time('state')} AS int) AS time",
        f"{_minute('state')} <=> {_minute('last')} AS with_last",
        f"{_minute('state')} <=> {_minute('next')} AS with_next",
        f"coalesce({_time('state')} - {_time('last')} <> 30, true) AS first",
        f"coalesce({_time('state')} = {_time('last')}, false) AS repeated",
        "last_cell", "cell <=> last_cell AS like_last", "cell <=> next_cell AS like_next",
        f"last <=> state - {STEP} AND second_last <=> state - 2 * {STEP}"
        f" AND third_last <=> state - 3 * {STEP} AS equal",
        f"{_minute('state')} <=> {_minute('second_last')}"
        f" OR {_minute('state')} <=> {_minute('second_next')} AS far",
        f"CAST(least({_time('state')} + 30, {_time('next')}) AS int) AS until",
        f"CAST(state & {2**32 - 1}L AS int) AS place",
    )  # fmt: skip
    return shop.table(
        """
        SELECT vid, xway, CAST(cell DIV 100 AS int) AS dir, cell % 100 AS seg,
               CAST(place DIV 1056000 AS int) AS lane, time, first, entered, repeated,
               IF(standing, place % 528000, NULL) AS standing_at,
               IF(standing, until, NULL) AS standing_until,
               CASE WHEN far OR with_last AND with_next THEN NULL
                    WHEN with_last AND like_last THEN 0
                    WHEN with_next AND like_next THEN 2 ELSE 1 END AS stands_for,
               CAST(spd AS bigint) + IF(NOT far AND NOT with_last AND with_next AND like_next,
                                        next_spd, 0) AS spd
        FROM (SELECT *, first OR cell % 100 <> last_cell % 100 AS entered,
                     equal AND place DIV 1056000 BETWEEN 1 AND 3 AS standing
              FROM {chained})
        WHERE entered OR standing OR repeated
              OR far OR with_last AND with_next OR NOT (with_last AND like_last)
        """,
        chained=chained,
    )


def _time(state: str) -> str:
    return f"shiftright({state}, 32)"


def _minute(state: str) -> str:
    return f"(shiftright({state}, 32) DIV 60)"


def _brandeis(shop: Workshop, reports: Frame) -> Frame:
    """No trips; standing is by reports 30 s apart at speed 0, on any lane."""
    window = "WINDOW w AS (PARTITION BY vid, xway ORDER BY time)"
    chained = shop.table(
        f"""
        SELECT {COUNTED}, coalesce(
                   time - lag(time) OVER w = 30 AND lane = lag(lane) OVER w
                   AND pos = lag(pos) OVER w AND dir = lag(dir) OVER w
                   AND spd = 0 AND lag(spd) OVER w = 0, false) AS equal
        FROM {{reports}} {window}
        """,
        reports=reports,
    )
    followed = shop.table(
        f"""
        SELECT {COUNTED}, IF(equal AND lag(equal, 1, false) OVER w AND lag(equal, 2, false) OVER w,
                             pos, NULL) AS standing_at
        FROM {{chained}} {window}
        """,
        chained=chained,
    )
    # A segment counts as entered once in the whole run, and not on the exit lane.
    return shop.table(
        """
        SELECT vid, xway, dir, seg, lane, time, spd, true AS first,
               lane <> 4 AND time = min(IF(lane <> 4, time, NULL))
                   OVER (PARTITION BY vid, xway, dir, seg) AS entered,
               standing_at, time + 31 AS standing_until
        FROM {followed}
        """,
        followed=followed,
    )


def _walmart(shop: Workshop, reports: Frame) -> Frame:
    """By vehicle, expressway and direction; from an exit on nothing counts until an entry."""
    window = "WINDOW w AS (PARTITION BY vid, xway, dir ORDER BY time)"
    counted = shop.table(
        f"""
        SELECT {COUNTED} FROM (
            SELECT *, max(IF(lane = 4, time, NULL)) OVER
                        (PARTITION BY vid, xway, dir ORDER BY time
                         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS left_at,
                   max(IF(lane = 0, time, NULL)) OVER
                        (PARTITION BY vid, xway, dir ORDER BY time
                         ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS entered_at
            FROM {{reports}})
        WHERE left_at IS NULL OR entered_at > left_at
        """,
        reports=reports,
    )
    chained = shop.table(
        f"""
        SELECT *, first OR seg <> last_seg AS entered,
               NOT first AND lane = last_lane AND pos = last_pos AS equal
        FROM (SELECT {COUNTED}, lag(seg) OVER w AS last_seg, lag(lane) OVER w AS last_lane,
                     lag(pos) OVER w AS last_pos,
                     lag(time) OVER w IS NULL OR lane = 0 AND time - lag(time) OVER w > 60
                         AS first
              FROM {{counted}} {window})
        """,
        counted=counted,
    )
    # `fourth`: the report with which a vehicle counts as stopped.
    fourths = shop.table(
        f"""
        SELECT *, equal AND lag(equal, 1, false) OVER w AND lag(equal, 2, false) OVER w
                  AND NOT lag(equal, 3, false) OVER w AS fourth
        FROM {{chained}} {window}
        """,
        chained=chained,
    )
    # A stop ends at the next report after the fourth that is a fourth or from elsewhere;
    # a vehicle without another report in this trip never leaves.
    ends = shop.table(
        f"""
        SELECT vid, xway, dir, time, IF(lead(first, 1, true) OVER w, NULL, lead(time) OVER w)
                   AS elsewhere
        FROM {{fourths}} WHERE fourth OR NOT equal {window}
        """,
        fourths=fourths,
    )
    return shop.table(
        """
        SELECT f.vid, f.xway, f.dir, f.seg, f.lane, f.time, f.spd, f.first, f.entered,
               IF(f.fourth, f.pos, NULL) AS standing_at, e.elsewhere AS standing_until
        FROM {fourths} AS f LEFT JOIN {ends} AS e
        ON f.fourth AND f.vid = e.vid AND f.xway = e.xway AND f.dir = e.dir AND f.time = e.time
        """,
        fourths=fourths,
        ends=ends,
    )
