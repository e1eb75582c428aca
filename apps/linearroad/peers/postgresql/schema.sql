-- Tables and functions of both implementations. Minutes count from 0: minute m has the seconds
-- 60 m to 60 m + 59. The rules are those of docs/linear-road-rules.md.

-- Expressways and vehicles of the generated base; copies share the history of their originals.
CREATE UNLOGGED TABLE base (xways int, vids int);
-- TollHistory: an array by day for each vehicle and expressway.
CREATE UNLOGGED TABLE tolls (vid int, xway int, toll int[], PRIMARY KEY (vid, xway));
-- SegmentHistory: minutes to cross each of the 100 segments, and tolls, by minute of the day.
CREATE UNLOGGED TABLE segments (
  xway int, dow int, dir int, minute int, minutes float8[], toll int[],
  PRIMARY KEY (xway, dow, dir, minute)
);

-- The rows of one second.
CREATE TEMPORARY TABLE input (
  type int, time int, vid int, spd int, xway int, lane int, dir int, seg int, pos int, qid int,
  sinit int, send int, dow int, tod int, day int
) ON COMMIT DELETE ROWS;

-- The last report of each vehicle: how many equal places end with it, and the toll quoted for its
-- segment. Only columns without an index change, so that updates stay in their page.
CREATE UNLOGGED TABLE vehicles (
  vid int, xway int, time int, seg int, lane int, dir int, pos int, equal int, quote int,
  PRIMARY KEY (vid, xway)
) WITH (fillfactor = 50);
-- The last stop of each vehicle that has stopped, from its fourth equal report on (section 2.5).
CREATE UNLOGGED TABLE stops (
  vid int, xway int, lane int, dir int, pos int, begins int, ends int, PRIMARY KEY (vid, xway)
);
CREATE UNLOGGED TABLE accounts (vid int PRIMARY KEY, balance bigint) WITH (fillfactor = 50);
-- Reports of the current minute, and the statistics of complete ones.
CREATE UNLOGGED TABLE speeds (xway int, dir int, seg int, vid int, spd int);
CREATE UNLOGGED TABLE statistics (minute int, xway int, dir int, seg int, cars int, speed float8);
-- What is quoted in the current minute; a segment without a row has no average and no toll.
CREATE UNLOGGED TABLE quotes (
  xway int, dir int, seg int, lav int, toll int, accident int, PRIMARY KEY (xway, dir, seg)
);
CREATE UNLOGGED TABLE clock (minute int);
INSERT INTO clock VALUES (0);

-- Complete all minutes before one, and compute what is quoted in it (sections 2.4, 2.6 and 2.7).
CREATE FUNCTION begin_minute(now int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO statistics
    SELECT (SELECT minute FROM clock), xway, dir, seg, count(*), avg(speed)
    FROM (
      SELECT xway, dir, seg, sum(spd)::float8 / count(*) AS speed
      FROM speeds GROUP BY xway, dir, seg, vid
    ) AS by_vehicle
    GROUP BY xway, dir, seg;
  TRUNCATE speeds, quotes;
  DELETE FROM statistics WHERE minute < now - 5;
  INSERT INTO quotes
    WITH averages AS (
      SELECT xway, dir, seg, floor(avg(speed) + 1e-9)::int AS lav,
             coalesce(sum(cars) FILTER (WHERE minute = now - 1), 0)::int AS cars
      FROM statistics GROUP BY xway, dir, seg
    ), accidents AS (
      SELECT DISTINCT a.xway, a.dir, a.pos / 5280 AS seg
      FROM stops a JOIN stops b USING (xway, lane, dir, pos)
      WHERE a.vid < b.vid
        AND greatest(a.begins, b.begins, 60 * (now - 1)) < least(a.ends, b.ends, 60 * now)
    ), ahead AS (
      SELECT xway, dir, s AS seg,
             CASE WHEN dir = 0 THEN min(accidents.seg) ELSE max(accidents.seg) END AS accident
      FROM accidents, generate_series(
        CASE WHEN dir = 0 THEN greatest(seg - 4, 0) ELSE seg END,
        CASE WHEN dir = 0 THEN seg ELSE least(seg + 4, 99) END
      ) AS s
      GROUP BY xway, dir, s
    )
    SELECT xway, dir, seg, coalesce(lav, -1),
           CASE WHEN lav < 40 AND cars > 50 AND accident IS NULL
                THEN 2 * (cars - 50) * (cars - 50) ELSE 0 END,
           accident
    FROM averages FULL JOIN ahead USING (xway, dir, seg);
  UPDATE clock SET minute = now;
  ANALYZE vehicles, quotes;
END $$;

-- Seconds and tolls of a journey, segment by segment at the minute each is reached (section 3.3).
CREATE FUNCTION travel(road int, first int, last int, weekday int, start int)
RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  way int := CASE WHEN first <= last THEN 0 ELSE 1 END;
  step int := CASE WHEN first <= last THEN 1 ELSE -1 END;
  taken float8 := 0;
  cost bigint := 0;
  at int := first;
  crossing record;
BEGIN
  WHILE at <> last LOOP
    SELECT s.minutes[at + 1] AS minutes, s.toll[at + 1] AS toll INTO crossing FROM segments s
    WHERE s.xway = road AND s.dow = weekday AND s.dir = way
      AND s.minute = (floor(start + taken + 1e-9)::int - 1) % 1440 + 1;
    taken := taken + coalesce(crossing.minutes, 60);
    cost := cost + coalesce(crossing.toll, 0);
    at := at + step;
  END LOOP;
  RETURN floor(60 * taken + 0.5 + 1e-9)::int || ',' || cost;
END $$;

-- The answers to the requests of a second, after all of its reports (section 2.9).
CREATE FUNCTION requests(t int) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
    SELECT format('2,%s,%s,%s,%s,%s', t, t, t, qid, coalesce(balance, 0))
    FROM input LEFT JOIN accounts USING (vid) WHERE type = 2;
  RETURN QUERY
    SELECT format('3,%s,%s,%s,%s', t, t, qid, coalesce(h.toll[day], 0))
    FROM input i CROSS JOIN base
      LEFT JOIN tolls h ON h.vid = i.vid % base.vids AND h.xway = i.xway % base.xways
    WHERE type = 3;
  RETURN QUERY
    SELECT format('4,%s,%s,%s,%s', t, t, qid, travel(xway % base.xways, sinit, send, dow, tod))
    FROM input CROSS JOIN base WHERE type = 4;
END $$;
