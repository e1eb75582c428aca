"""Validation by the rules of the thesis: answers carry no times and are matched by their order.

A notification is matched to a segment that its vehicle entered by VID and order, an alert by VID,
accident and order, an answer to a request by QID.
"""

from __future__ import annotations

from pathlib import Path

from linearroad.validation import thesis_rows
from linearroad.validation.comparison import TRAVEL_MARGIN, Comparison
from linearroad.validation.flat import write_answers
from linearroad.validation.history import Journeys, travel_times
from linearroad.validation.rows import Form, Input, read_input
from linearroad.validation.tables import Frame, Workshop, require_columns
from linearroad.validation.thesis_expected import known_of
from linearroad.validation.thesis_money import Tariff, money_of

__all__ = [
    "LIMITS_S",
    "Tariff",
    "compare",
    "expect",
    "read_answers",
    "read_rows",
]

LIMITS_S = (15, 15, 60, 90, 120)
PATTERN = r"\A[0-9]+(\.[0-9]+)?,[0-4](,-?[0-9]+){4}\z"
FORM = Form(
    thesis_rows.read, thesis_rows.COLUMNS, thesis_rows.REPORT, thesis_rows.REQUEST,
    ("vid", "xway", "dir", "mile", "offset", "lane", "time", "speed AS spd", "place"),
    ("type", "time", "vid", "xway", "speed AS qid", "mile AS sinit", "offset AS send",
     "lane + 1 AS dow", "dir + 1 AS tod"),
)  # fmt: skip


def read_rows(shop: Workshop, path: Path, before: int | None) -> Input:
    """The rows of an input that count."""
    return read_input(shop, path, before, FORM)


def read_answers(shop: Workshop, path: Path) -> Frame:
    """`type, key, f2, f3, f4, arrival_ms, rank, place, malformed`."""
    if path.suffix == ".parquet":
        require_columns(path, ("arrival", "type", "f1", "f2", "f3", "f4"))
        told = shop.read(path).selectExpr(
            "try_cast(type AS int) AS type", "f1 AS key", "f2", "f3", "f4",
            "try_cast(round(arrival * 1000) AS bigint) AS arrival_ms",
            "_metadata.row_index AS place", "to_json(struct(*)) AS line",
        )  # fmt: skip
    else:
        target = shop.folder / "answers.parquet"
        write_answers(path, target, PATTERN, dict.fromkeys(range(5), 6), 1)
        told = shop.read(target).selectExpr(
            "CAST(kind AS int) AS type", "try_cast(f2 AS bigint) AS key",
            "try_cast(f3 AS bigint) AS f2", "try_cast(f4 AS bigint) AS f3",
            "try_cast(f5 AS bigint) AS f4",
            "try_cast(round(try_cast(f0 AS double) * 1000) AS bigint) AS arrival_ms", "place",
            "coalesce(line, concat_ws(',', f0, f1, f2, f3, f4, f5)) AS line",
        )  # fmt: skip
    whole = "type BETWEEN 0 AND 4 AND key BETWEEN 0 AND 2147483647 AND arrival_ms IS NOT NULL"
    whole += " AND f2 IS NOT NULL AND f3 IS NOT NULL AND f4 IS NOT NULL"
    known = told.selectExpr("*", f"IF(coalesce({whole}, false), NULL, line) AS malformed")
    return shop.keep(
        shop.table(
            """
            SELECT *, row_number() OVER (PARTITION BY type, key, IF(type = 1, f2, 0),
                          IF(type = 1, f3, 0), IF(type = 1, f4, 0), malformed IS NULL
                          ORDER BY arrival_ms, IF(type > 1, f2, 0), IF(type > 1, f3, 0), place)
                          - 1 AS rank
            FROM {known}
            """,
            known=known.drop("line"),
        )
    )


def expect(
    shop: Workshop,
    rows: Input,
    segments: Frame | Path | None,
    tariff: Tariff,
    answers: Frame,
    strict: bool,
) -> Frame:
    """`type, time, key, f2, f3, f4, rank`; not `strict`: tolls of any second of the last 60."""
    known = known_of(shop, rows.reports, tariff.basetoll)
    sent = answers.where("malformed IS NULL AND type = 0").selectExpr(
        "CAST(key AS int) AS vid", "f3 AS sent_speed", "f2 AS sent_toll", "rank"
    )
    money = money_of(shop, known, rows.requests, sent, tariff, strict)
    how = Journeys(150, tariff.basetoll, 1)
    return shop.keep(
        shop.table(
            """
            SELECT type, time, key, f2, f3, f4, rank FROM {money} WHERE type = 0
            UNION ALL
            SELECT type, time, key, f2, f3, f4,
                   row_number() OVER (PARTITION BY type, key, IF(type = 1, f2, 0),
                       IF(type = 1, f3, 0), IF(type = 1, f4, 0) ORDER BY time, f2, f3) - 1
            FROM (SELECT type, time, key, f2, f3, f4 FROM {money} WHERE type <> 0
                  UNION ALL
                  SELECT 4, time, qid, CAST(traveltime AS bigint), toll, 0L FROM {travelled}
                  UNION ALL
                  SELECT 1, time, vid, CAST(xway AS bigint), CAST(mile AS bigint),
                         CAST(dir AS bigint) FROM {alerts})
            """,
            money=money,
            travelled=travel_times(shop, rows.requests, segments, how),
            alerts=known.alerts,
        )
    )


_LIMIT_MS = "CASE type " + " ".join(
    f"WHEN {kind} THEN {1000 * limit}" for kind, limit in enumerate(LIMITS_S)
) + " END"  # fmt: skip
_NAME = """CASE type WHEN 0 THEN 'toll notification' WHEN 1 THEN 'accident alert'
           WHEN 2 THEN 'balance' WHEN 3 THEN 'expenditure' ELSE 'travel time' END"""


def _content(side: str) -> str:
    f2, f3, f4 = (f"{side}_f{i}" for i in (2, 3, 4))
    return f"""CASE type WHEN 0 THEN concat('toll ', {f2}, ' at speed ', {f3})
        WHEN 1 THEN concat('expressway ', {f2}, ', mile ', {f3}, ', direction ', {f4})
        WHEN 4 THEN concat({f2}, ' s and toll ', {f3}) ELSE CAST({f2} AS string) END"""


_SENTENCE = f"""CASE kind
    WHEN 'malformed' THEN concat('a row is no answer: ', text)
    WHEN 'missing' THEN concat({_NAME}, {{whose}}, ' at ', time, ' s: expected ',
                               {_content("expected")}, ', none was sent')
    WHEN 'unexpected' THEN concat({_NAME}, {{whose}}, ': ', {_content("answered")},
                                  ' was sent and not expected')
    WHEN 'different' THEN concat({_NAME}, {{whose}}, ' at ', time, ' s: expected ',
                                 {_content("expected")}, ', sent ', {_content("answered")})
    WHEN 'late' THEN concat({_NAME}, {{whose}}, ' at ', time, ' s arrived ', delay, ' s after, the '
                            'limit is ', CAST({_LIMIT_MS} DIV 1000 AS string), ' s')
    ELSE concat({_NAME}, {{whose}}, ' at ', time, ' s arrived ', delay, ' s before') END"""
_WHOSE = "concat(IF(type < 2, ' of vehicle ', ' for request '), key)"


def _paired(shop: Workshop, expected: Frame, answers: Frame) -> Frame:
    """Every answer beside the one that was expected."""
    return shop.keep(
        shop.table(
            f"""
            SELECT coalesce(e.type, a.type) AS type, CAST(coalesce(e.key, a.key) AS int) AS key,
                   coalesce(e.time, CAST(a.arrival_ms DIV 1000 AS int)) AS time,
                   e.f2 AS expected_f2, e.f3 AS expected_f3, e.f4 AS expected_f4,
                   a.f2 AS answered_f2, a.f3 AS answered_f3, a.f4 AS answered_f4, a.arrival_ms,
                   CASE WHEN a.key IS NULL THEN 'missing' WHEN e.key IS NULL THEN 'unexpected'
                        WHEN a.f2 = e.f2 AND a.f3 = e.f3 AND a.f4 = e.f4 THEN 'right'
                        WHEN a.type = 4 AND a.f3 = e.f3 AND e.f2 >= 0
                             AND abs(a.f2 - e.f2) <= {TRAVEL_MARGIN} * e.f2 THEN 'right'
                        ELSE 'different' END AS kind
            FROM {{expected}} AS e
            FULL OUTER JOIN (SELECT * FROM {{answers}} WHERE malformed IS NULL) AS a
            ON e.type = a.type AND e.key = a.key AND e.rank = a.rank
               AND (e.type <> 1 OR e.f2 = a.f2 AND e.f3 = a.f3 AND e.f4 = a.f4)
            """,
            expected=expected,
            answers=answers,
        )
    )


def compare(
    shop: Workshop, expected: Frame, answers: Frame, timed: bool | None
) -> tuple[Comparison, Frame, bool]:
    """Every answer beside the one that was expected, those that can be timed, and whether they are.

    `timed`: whether Arrival counts; None if the answers decide that. Differences come with a
    sentence.
    """
    pairs = _paired(shop, expected, answers)
    if timed is None:
        timed = _arrivals_differ(shop, pairs)
    minutes = shop.table(
        """
        SELECT CAST(type AS tinyint) AS type, CAST(time DIV 60 AS int) + 1 AS minute,
               sum(IF(kind = 'unexpected', 0, 1)) AS expected,
               sum(IF(kind = 'missing', 0, 1)) AS answered, sum(IF(kind = 'right', 1, 0)) AS right
        FROM {pairs} GROUP BY 1, 2
        """,
        pairs=pairs,
    )
    timing = f"""UNION ALL
        SELECT IF(arrival_ms < 1000L * time, 'early', 'late') AS kind, * EXCEPT (kind)
        FROM {{pairs}} WHERE kind IN ('right', 'different')
             AND (arrival_ms < 1000L * time OR arrival_ms - 1000L * time > {_LIMIT_MS})"""
    odd = shop.table(
        f"""
        SELECT kind, type, time, key, expected_f2, expected_f3, expected_f4, answered_f2,
               answered_f3, answered_f4, arrival_ms AS emit_ms, CAST(NULL AS string) AS text,
               format_string('%.3f', abs(arrival_ms - 1000L * time) / 1000.0D) AS delay
        FROM (SELECT kind, * EXCEPT (kind) FROM {{pairs}} WHERE kind <> 'right'
              {timing if timed else ""})
        UNION ALL
        SELECT 'malformed', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, malformed,
               NULL FROM {{answers}} WHERE malformed IS NOT NULL
        """,
        pairs=pairs,
        answers=answers,
    )
    told = odd.selectExpr("*", f"{_SENTENCE.format(whose=_WHOSE)} AS sentence")
    matched = pairs.where("kind IN ('right', 'different')").selectExpr(
        "type", "time", "arrival_ms AS emit_ms", "CAST(NULL AS string) AS malformed"
    )
    return Comparison(minutes, shop.keep(told)), matched, timed


def _arrivals_differ(shop: Workshop, pairs: Frame) -> bool:
    """Whether any Arrival is not the second of its cause: where none is, a system was not timed.

    Whole seconds tell that only for vehicles and requests with as many answers as expected: other
    answers are compared with those of other rows.
    """
    differing = shop.table(
        """
        SELECT type, key FROM {pairs} GROUP BY type, key
        HAVING bool_or(arrival_ms % 1000 <> 0)
            OR bool_and(kind IN ('right', 'different')) AND bool_or(arrival_ms <> 1000L * time)
        """,
        pairs=pairs,
    )
    return not differing.isEmpty()
