"""Following each vehicle: trips, segments entered, standing still; one function per rule set.

`entered`         the segments entered: a report in another segment than before, or the start of a
                  trip (`first`)
`standing`        the reports of standing vehicles, the fourth of equal ones and later; from
                  `standing_until` on a vehicle no longer counts, for lack of reports
`counted`         sums for the statistics of a segment and minute
"""

from __future__ import annotations

from dataclasses import dataclass

from linearroad.storage import spark_uri
from linearroad.validation.chains import COUNTED as SUMS
from linearroad.validation.chains import ENTERED, SCHEMA, STANDING, follow_paper
from linearroad.validation.rows import Input
from linearroad.validation.sources import follow_shares
from linearroad.validation.tables import Frame, Workshop

__all__ = ["Followed", "first_reports", "follow"]

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


@dataclass(frozen=True)
class Followed:
    """What the reports mean, in three tables."""

    entered: Frame  # vid, xway, dir, seg, lane, time, first
    standing: Frame  # vid, xway, dir, lane, pos, time, standing_until
    counted: Frame  # xway, dir, seg, minute, vehicles, average, speed, reports; in parts


def follow(shop: Workshop, rows: Input, rules: str) -> Followed:
    """The segments entered, the standing vehicles and the sums of every segment and minute."""
    if rules == "paper":
        return _paper(shop, rows)
    follow_all = _brandeis if rules == "brandeis" else _walmart
    followed = shop.keep(follow_all(shop, first_reports(shop, rows.reports)))
    counted = shop.table(
        """
        SELECT xway, dir, seg, minute, count(*) AS vehicles, sum(speed / reports) AS average,
               sum(speed) AS speed, sum(reports) AS reports
        FROM (SELECT xway, dir, seg, CAST(time DIV 60 AS int) + 1 AS minute,
                     sum(CAST(spd AS bigint)) AS speed, count(*) AS reports
              FROM {followed} GROUP BY xway, dir, seg, time DIV 60, vid)
        GROUP BY xway, dir, seg, minute
        """,
        followed=followed,
    )
    standing = followed.where("standing_at IS NOT NULL").selectExpr(
        "vid", "xway", "dir", "lane", "standing_at AS pos", "time", "standing_until"
    )
    return Followed(followed.where("entered"), standing, counted)


def _paper(shop: Workshop, rows: Input) -> Followed:
    """By `chains`, in parts that have all reports of their vehicles."""
    if rows.sources is not None:
        folder = shop.folder / "followed"
        follow_shares(shop.spark, rows.sources, folder)
        followed = shop.spark.read.schema(SCHEMA).parquet(spark_uri(folder))
    else:
        spread = rows.reports.repartition("vid")
        followed = shop.keep(spread.mapInArrow(follow_paper, SCHEMA))
    standing = ("vid", "xway", "dir", "lane", "pos", "time", "until AS standing_until")
    counted = ("xway", "dir", "seg", "time AS minute", "vehicles", "average", "speed", "reports")
    return Followed(
        followed.where(f"what = {ENTERED}"),
        followed.where(f"what = {STANDING}").selectExpr(*standing),
        followed.where(f"what = {SUMS}").selectExpr(*counted),
    )


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
