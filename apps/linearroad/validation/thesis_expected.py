"""The answers that docs/linear-road-thesis.md asks for, as tables."""

from __future__ import annotations

from dataclasses import dataclass

from linearroad.validation.tables import Frame, Workshop

__all__ = ["Known", "known_of"]

SEGMENT = "xway, dir, mile"


@dataclass(frozen=True)
class Known:
    """What the reports mean."""

    reports: Frame  # vid, xway, dir, mile, time, spd: those that count
    #: vid, xway, dir, mile, time, entered, first, credited, speed, base: in the order of `turn`
    events: Frame
    alerts: Frame  # vid, time, xway, mile, dir


def known_of(shop: Workshop, reports: Frame, base_toll: int) -> Known:
    """Trips, accidents, tolls before the discount, and credits."""
    followed = shop.keep(_followed(shop, reports))
    accidents = shop.keep(_accidents(shop, followed))
    events = shop.keep(_events(shop, followed, accidents, base_toll))
    return Known(followed, events, _alerts(shop, followed, accidents))


def _followed(shop: Workshop, reports: Frame) -> Frame:
    """The reports that count, each with what its vehicle's others say about it."""
    window = "WINDOW w AS (PARTITION BY vid, xway ORDER BY time)"
    chained = shop.table(
        f"""
        SELECT *, coalesce(time - lag(time) OVER w <> 30, true) AS first,
               lead(time) OVER w AS next_time, lane IN (0, 7) AS ramp,
               coalesce(mile <> lag(mile) OVER w OR dir <> lag(dir) OVER w, true) AS elsewhere,
               coalesce(offset = lag(offset) OVER w AND lane = lag(lane) OVER w, false) AS still
        FROM (SELECT * FROM (
                  SELECT *, lag(time) OVER (PARTITION BY vid, xway ORDER BY time, place) AS earlier
                  FROM {{reports}})
              WHERE earlier IS NULL OR earlier < time)
        {window}
        """,
        reports=reports,
    )
    tripped = shop.table(
        f"""
        SELECT *, NOT first AND NOT elsewhere AND still AS equal,
               sum(IF(first, 1, 0)) OVER w AS trip
        FROM {{chained}} {window}
        """,
        chained=chained,
    )
    trip = "PARTITION BY vid, xway, trip ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING"
    return shop.table(
        f"""
        SELECT vid, xway, dir, mile, time, spd, first, first OR elsewhere AS entered, next_time,
               equal AND lag(equal, 1, false) OVER w AND lag(equal, 2, false) OVER w AS standing,
               ramp AND exits AND NOT coalesce(bool_or(ramp AND exits) OVER
                   ({trip} AND 1 PRECEDING), false) AS leaves
        FROM (SELECT *, coalesce(bool_or(NOT ramp) OVER ({trip} AND 1 PRECEDING), false) AS exits
              FROM {{tripped}})
        {window}
        """,
        tripped=tripped,
    )


def _accidents(shop: Workshop, followed: Frame) -> Frame:
    """Every second of an accident in a segment; `detected` if it is the first."""
    return shop.table(
        f"""
        SELECT *, coalesce(lag(second) OVER (PARTITION BY {SEGMENT} ORDER BY second) < second - 1,
                           true) AS detected
        FROM (SELECT {SEGMENT}, second
              FROM (SELECT {SEGMENT}, vid, explode(sequence(time, CAST(
                        least(time + 29L, next_time - 1L, 2147483647L) AS int))) AS second
                    FROM {{followed}} WHERE standing)
              GROUP BY {SEGMENT}, second HAVING count(DISTINCT vid) >= 2)
        """,
        followed=followed,
    )


def _alerts(shop: Workshop, followed: Frame, accidents: Frame) -> Frame:
    """Who was upstream, by a last report of less than 30 s before, when it was detected."""
    return shop.table(
        """
        SELECT r.vid, d.second AS time, d.xway, d.accident AS mile, d.dir
        FROM (SELECT *, explode(sequence(second - 29, second)) AS reported
              FROM (SELECT xway, dir, mile AS accident, second,
                           explode(transform(sequence(1, 5), away -> IF(dir = 1, mile - away,
                                                                        mile + away))) AS mile
                    FROM {accidents} WHERE detected)) AS d
        JOIN {followed} AS r ON r.xway = d.xway AND r.dir = d.dir AND r.mile = d.mile
             AND r.time = d.reported
        WHERE r.next_time IS NULL OR r.next_time > d.second
        """,
        accidents=accidents,
        followed=followed,
    )


def _statistics(shop: Workshop, followed: Frame) -> Frame:
    """Mean speed and vehicles at the start of each minute in which a segment has reports."""
    return shop.table(
        f"""
        SELECT {SEGMENT}, minute, sum(speed) OVER five AS speed, sum(reports) OVER five AS reports,
               coalesce(max(vehicles) OVER before, 0L) AS n
        FROM (SELECT {SEGMENT}, CAST(time DIV 60 AS int) AS minute,
                     sum(CAST(spd AS bigint)) AS speed, count(*) AS reports,
                     count(DISTINCT vid) AS vehicles
              FROM {{followed}} GROUP BY {SEGMENT}, time DIV 60)
        WINDOW five AS (PARTITION BY {SEGMENT} ORDER BY minute
                        RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING),
               before AS (PARTITION BY {SEGMENT} ORDER BY minute
                          RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING)
        """,
        followed=followed,
    )


def _events(shop: Workshop, followed: Frame, accidents: Frame, base_toll: int) -> Frame:
    """Segments entered, with speed and toll before the discount, and exits that are credited."""
    near = shop.table(
        """
        SELECT xway, dir, mile, second, bool_or(away > 0) AS ahead
        FROM (SELECT xway, dir, second, away, IF(dir = 1, mile - away, mile + away) AS mile
              FROM (SELECT *, explode(sequence(0, 5)) AS away FROM {accidents}))
        GROUP BY xway, dir, mile, second
        """,
        accidents=accidents,
    )
    return shop.table(
        f"""
        SELECT e.vid, e.xway, e.dir, e.mile, e.time, e.entered, e.first,
               e.leaves AND coalesce(a.ahead, false) AS credited, a.second IS NOT NULL AS freed,
               CAST(coalesce(floor(CAST(s.speed AS double) / s.reports + 1e-9), -1) AS bigint)
                   AS speed,
               IF(s.speed < 40 * s.reports AND s.n > 150 AND a.second IS NULL,
                  {base_toll}L * (s.n - 150) * (s.n - 150), 0L) AS base
        FROM (SELECT * FROM {{followed}} WHERE entered OR leaves) AS e
        JOIN {{statistics}} AS s ON e.xway = s.xway AND e.dir = s.dir AND e.mile = s.mile
             AND e.time DIV 60 = s.minute
        LEFT JOIN {{near}} AS a ON e.xway = a.xway AND e.dir = a.dir AND e.mile = a.mile
             AND e.time = a.second
        """,
        followed=followed,
        statistics=_statistics(shop, followed),
        near=near,
    )
