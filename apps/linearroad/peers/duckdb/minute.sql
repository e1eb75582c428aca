-- Complete minute {minute}, and compute what is quoted in minute {now}.
INSERT INTO statistics
  SELECT {minute}, xway, dir, seg, count(*), avg(speed)
  FROM (
    SELECT xway, dir, seg, avg(spd) AS speed FROM recent
    WHERE time >= 60 * {minute} AND time < 60 * ({minute} + 1) GROUP BY xway, dir, seg, vid
  )
  GROUP BY xway, dir, seg;
DELETE FROM statistics WHERE minute < {now} - 5;
CREATE OR REPLACE TABLE recent AS SELECT * FROM recent WHERE time >= 60 * {now} - 30;
CREATE OR REPLACE TABLE accounts AS SELECT vid, sum(amount)::BIGINT AS amount FROM accounts GROUP BY vid;
CREATE OR REPLACE TABLE quotes AS
  WITH averages AS (
    SELECT xway, dir, seg, floor(avg(speed) + 1e-9)::INTEGER AS lav,
           coalesce(sum(cars) FILTER (WHERE minute = {now} - 1), 0)::INTEGER AS cars
    FROM statistics GROUP BY xway, dir, seg
  ), accidents AS (
    SELECT DISTINCT a.xway, a.dir, a.pos // 5280 AS place
    FROM stops a JOIN stops b USING (xway, lane, dir, pos)
    WHERE a.vid < b.vid
      AND greatest(a.begins, b.begins, 60 * ({now} - 1)) < least(a.ends, b.ends, 60 * {now})
  ), ahead AS (
    SELECT xway, dir, seg, CASE WHEN dir = 0 THEN min(place) ELSE max(place) END AS accident
    FROM (
      SELECT xway, dir, place, place + distance * (2 * dir - 1) AS seg
      FROM accidents, range(5) AS upstream(distance)
    )
    WHERE seg BETWEEN 0 AND 99 GROUP BY xway, dir, seg
  )
  SELECT xway, dir, seg, coalesce(lav, -1) AS lav,
         CASE WHEN lav < 40 AND cars > 50 AND accident IS NULL
              THEN 2 * (cars - 50) * (cars - 50) ELSE 0 END AS toll,
         accident
  FROM averages FULL JOIN ahead USING (xway, dir, seg);
DELETE FROM stops WHERE ends <= 60 * {now} - 60;
