"""Following each vehicle: trips, segments entered, standing still; one function per rule set.

Each gives a table of the reports that count, with what a rule needs to know of the vehicle's
reports before and after:

`first`          the report starts a trip
`entered`        it shows the vehicle in another segment than before, or starts a trip
`standing_at`    its Pos, if it is the fourth or a later one of equal reports; else null
`standing_until` the second at which the vehicle, standing, stops standing for lack of reports
"""

from __future__ import annotations

from linearroad.validation.tables import Frame, Workshop

__all__ = ["first_reports", "follow"]

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
    """The reports that count, and what each says of its vehicle; in memory from now on."""
    followed = {"paper": _paper, "brandeis": _brandeis, "walmart": _walmart}[rules]
    return shop.keep(followed(shop, first_reports(shop, reports)))


def _paper(shop: Workshop, reports: Frame) -> Frame:
    """A trip goes on exactly 30 s after the last report; standing is by lane 1 to 3, any speed."""
    window = "WINDOW w AS (PARTITION BY vid, xway ORDER BY time)"
    chained = shop.table(
        f"""
        SELECT {COUNTED}, coalesce(time - lag(time) OVER w <> 30, true) AS first,
               seg <> lag(seg) OVER w AS other_segment,
               lane = lag(lane) OVER w AND pos = lag(pos) OVER w AND dir = lag(dir) OVER w AS same,
               lead(time) OVER w AS next_time
        FROM {{reports}} {window}
        """,
        reports=reports,
    ).selectExpr("*", "NOT first AND same AS equal")
    return shop.table(
        f"""
        SELECT {COUNTED}, first, first OR other_segment AS entered,
               IF(standing, pos, NULL) AS standing_at,
               IF(standing, least(time + 30, coalesce(next_time, time + 30)), NULL)
                   AS standing_until
        FROM (SELECT *, lane BETWEEN 1 AND 3 AND equal AND lag(equal, 1, false) OVER w
                        AND lag(equal, 2, false) OVER w AS standing
              FROM {{chained}} {window})
        """,
        chained=chained,
    ).drop("pos")


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
                     coalesce(lane = 0 AND time - lag(time) OVER w > 60, true) AS first
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
    # What follows a fourth report, among those and the reports elsewhere, is where it ends;
    # a vehicle that never reports again in this trip never leaves.
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
