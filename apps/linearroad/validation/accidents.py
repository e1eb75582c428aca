"""Accidents: which minutes of which segment count as accident minutes, by each rule set."""

from __future__ import annotations

from linearroad.validation.tables import Frame, Workshop

__all__ = ["accident_minutes"]


def accident_minutes(shop: Workshop, stops: Frame, rules: str, last_minute: int) -> Frame:
    """`xway, dir, seg, minute`, each once, up to the last minute that is needed."""
    # Many vehicles stand in queues, each at its own place; only places with two matter.
    standing = shop.keep(
        shop.table(
            """
            SELECT vid, xway, dir, lane, pos, time, standing_until FROM (
                SELECT *, min(vid) OVER place AS one, max(vid) OVER place AS two
                FROM {stops} WINDOW place AS (PARTITION BY xway, dir, lane, pos))
            WHERE one < two
            """,
            stops=stops,
        )
    )
    if rules == "paper":
        return _paper(shop, standing)
    if rules == "brandeis":
        return _brandeis(shop, standing)
    return _walmart(shop, standing, last_minute)


def _paper(shop: Workshop, standing: Frame) -> Frame:
    """Every minute with a second at which two vehicles are stopped at one place.

    A vehicle stands at a place from `time` until `standing_until`, which is at most its next
    report; so the number of vehicles there is that of the spans that have begun and not ended.
    """
    changes = shop.table(
        """
        SELECT xway, dir, lane, pos, second, sum(change) AS change
        FROM (SELECT xway, dir, lane, pos, time AS second, 1 AS change FROM {standing}
              UNION ALL
              SELECT xway, dir, lane, pos, standing_until, -1 FROM {standing})
        GROUP BY xway, dir, lane, pos, second
        """,
        standing=standing,
    )
    spans = shop.table(
        """
        SELECT xway, dir, pos, second, sum(change) OVER place AS vehicles,
               lead(second) OVER place AS until
        FROM {changes} WINDOW place AS (PARTITION BY xway, dir, lane, pos ORDER BY second)
        """,
        changes=changes,
    )
    return shop.table(
        """
        SELECT DISTINCT xway, dir, seg, minute
        FROM (SELECT xway, dir, CAST(pos DIV 5280 AS int) AS seg,
                     explode(sequence(CAST(second DIV 60 AS int) + 1,
                                      CAST((until - 1) DIV 60 AS int) + 1)) AS minute
              FROM {spans} WHERE vehicles >= 2)
        """,
        spans=spans,
    )


def _brandeis(shop: Workshop, standing: Frame) -> Frame:
    """Minutes of a stationary report 0 to 30 s after another vehicle's at the same place."""
    return shop.table(
        """
        SELECT DISTINCT later.xway, later.dir, CAST(later.pos DIV 5280 AS int) AS seg,
                        CAST(later.time DIV 60 AS int) + 1 AS minute
        FROM {standing} AS later
        JOIN (SELECT vid, xway, dir, lane, pos,
                     explode(sequence(time, standing_until - 1)) AS second
              FROM {standing}) AS earlier
        ON later.xway = earlier.xway AND later.dir = earlier.dir AND later.lane = earlier.lane
           AND later.pos = earlier.pos AND later.time = earlier.second AND later.vid <> earlier.vid
        """,
        standing=standing,
    )


def _walmart(shop: Workshop, standing: Frame, last_minute: int) -> Frame:
    """The first accident of a segment in the whole run; it ends the minute before one moves."""
    pairs = shop.table(
        """
        SELECT one.xway, one.dir, CAST(one.pos DIV 5280 AS int) AS seg,
               greatest(one.time, other.time) AS start,
               least(one.standing_until, other.standing_until) AS end
        FROM {standing} AS one JOIN {standing} AS other
        ON one.xway = other.xway AND one.dir = other.dir AND one.lane = other.lane
           AND one.pos = other.pos AND one.vid < other.vid
        """,
        standing=standing,
    ).where("end IS NULL OR start < end")
    return shop.table(
        f"""
        SELECT DISTINCT xway, dir, seg, minute FROM (
            SELECT xway, dir, seg, explode(sequence(0, {last_minute})) AS minute, start, end
            FROM (SELECT *, min(start) OVER (PARTITION BY xway, dir, seg) AS first_start
                  FROM {{pairs}})
            WHERE start = first_start)
        WHERE minute >= start DIV 60 + 1 AND (end IS NULL OR minute < end DIV 60 + 1)
        """,
        pairs=pairs,
    )
