"""The toll of a segment: LAV, the vehicles of the previous minute, accidents downstream."""

from __future__ import annotations

from linearroad.validation.tables import Frame, Workshop

__all__ = ["notify", "quote"]

MOST_BROADCAST = 1_000_000  # rows: about 25 expressways of three hours
# LAV as it is sent: `average` is that of a minute's vehicles, `speed` and `reports` are sums.
# Means are exact to far below 1e-9, so that a mean of 40 is never 39.
LAV = {
    "paper": "coalesce(floor(avg(average) OVER five + 1e-9), -1)",
    "brandeis": "coalesce(floor(avg(average) OVER five + 1e-9), -1)",
    "walmart": "coalesce(floor(sum(speed) OVER five / sum(reports) OVER five + 0.5 + 1e-9), 0)",
}


def _statistics(shop: Workshop, counted: Frame) -> Frame:
    return shop.table(
        """
        SELECT xway, dir, seg, minute, sum(vehicles) AS vehicles,
               sum(average) / sum(vehicles) AS average, sum(speed) AS speed, sum(reports) AS reports
        FROM {counted} GROUP BY xway, dir, seg, minute
        """,
        counted=counted,
    )


def quote(shop: Workshop, counted: Frame, accidents: Frame, rules: str) -> Frame:
    """LAV, toll and nearest accident (or null) for every segment and minute with a report.

    These are all segments that a vehicle can enter, because it enters with a report.
    """
    measured = shop.table(
        f"""
        SELECT xway, dir, seg, minute, CAST({LAV[rules]} AS int) AS lav,
               CAST(coalesce(max(vehicles) OVER before, 0) AS bigint) AS n
        FROM {{statistics}}
        WINDOW five AS (PARTITION BY xway, dir, seg ORDER BY minute
                        RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING),
               before AS (PARTITION BY xway, dir, seg ORDER BY minute
                          RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING)
        """,
        statistics=_statistics(shop, counted),
    )
    # From the accident: vehicles that approach it within four segments, a minute later.
    warned = shop.table(
        """
        SELECT xway, dir, seg, minute, min_by(accident_seg, away) AS accident_seg
        FROM (SELECT xway, dir, seg AS accident_seg, IF(dir = 0, seg - away, seg + away) AS seg,
                     minute + 1 AS minute, away
              FROM (SELECT *, explode(sequence(0, 4)) AS away FROM {accidents}))
        GROUP BY xway, dir, seg, minute
        """,
        accidents=accidents,
    )
    return shop.table(
        """
        SELECT xway, dir, seg, minute, lav, n, accident_seg,
               IF(lav < 40 AND n > 50 AND accident_seg IS NULL, 2 * (n - 50) * (n - 50), 0L)
                   AS toll
        FROM {measured} LEFT JOIN {warned} USING (xway, dir, seg, minute)
        """,
        measured=measured,
        warned=warned,
    )


def notify(shop: Workshop, entered: Frame, quotes: Frame, rows: int) -> Frame:
    """Every segment entered, with the toll that is quoted for it; none on the exit lane.

    `rows` are those of the quotes. The driver collects what is broadcast, so many are joined.
    """
    hint = "/*+ BROADCAST(q) */" if rows <= MOST_BROADCAST else ""
    return shop.table(
        f"""
        SELECT {hint} e.vid, e.xway, e.dir, e.seg, e.time, e.lane, e.first,
               q.lav, q.accident_seg, IF(e.lane = 4, 0L, q.toll) AS toll
        FROM {{entered}} AS e JOIN {{quotes}} AS q
        ON e.xway = q.xway AND e.dir = q.dir AND e.seg = q.seg
           AND e.time DIV 60 + 1 = q.minute
        """,
        entered=entered,
        quotes=quotes,
    )
