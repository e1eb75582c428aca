-- The polling implementation: once a second, all its rows at once by set-oriented statements.

CREATE FUNCTION poll(t int) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  IF t / 60 > (SELECT minute FROM clock) THEN
    PERFORM begin_minute(t / 60);
  END IF;
  RETURN QUERY
    WITH reports AS (  -- of two reports in one second, the first counts
      SELECT DISTINCT ON (vid, xway) * FROM input WHERE type = 0 ORDER BY vid, xway, ctid
    ), trips AS (
      SELECT r.*, v.quote AS quoted,
             v.time IS NOT DISTINCT FROM t - 30 AND v.seg <> r.seg AS left_segment,
             v.time IS DISTINCT FROM t - 30 OR v.seg <> r.seg AS entered,
             CASE WHEN v.time = t - 30 AND v.lane = r.lane AND v.dir = r.dir AND v.pos = r.pos
                  THEN v.equal + 1 ELSE 1 END AS equal
      FROM reports r LEFT JOIN vehicles v USING (vid, xway)
    ), told AS MATERIALIZED (
      SELECT trips.*, coalesce(q.lav, -1) AS lav, q.accident,
             equal >= 4 AND lane BETWEEN 1 AND 3 AS stopped,
             CASE WHEN NOT entered THEN quoted WHEN lane = 4 THEN 0 ELSE coalesce(q.toll, 0) END
               AS quote
      FROM trips LEFT JOIN quotes q USING (xway, dir, seg)
    ), remembered AS (
      INSERT INTO vehicles
        SELECT vid, xway, t, seg, lane, dir, pos, equal, quote FROM told
      ON CONFLICT (vid, xway) DO UPDATE
        SET (time, seg, lane, dir, pos, equal, quote) = (t, excluded.seg, excluded.lane,
          excluded.dir, excluded.pos, excluded.equal, excluded.quote)
    ), charged AS (
      INSERT INTO accounts
        SELECT vid, sum(quoted) FROM told WHERE left_segment AND quoted > 0 GROUP BY vid
      ON CONFLICT (vid) DO UPDATE SET balance = accounts.balance + excluded.balance
    ), measured AS (
      INSERT INTO speeds SELECT xway, dir, seg, vid, spd FROM told
    ), standing AS (
      INSERT INTO stops
        SELECT vid, xway, lane, dir, pos, t - 30 * (equal - 4), t + 30 FROM told WHERE stopped
      ON CONFLICT (vid, xway) DO UPDATE
        SET (lane, dir, pos, begins, ends) =
          (excluded.lane, excluded.dir, excluded.pos, excluded.begins, excluded.ends)
    ), moving AS (
      UPDATE stops SET ends = t FROM told
      WHERE stops.vid = told.vid AND stops.xway = told.xway AND stops.ends > t AND NOT told.stopped
    )
    SELECT format('0,%s,%s,%s,%s,%s', vid, t, t, lav, quote) FROM told WHERE entered AND lane <> 4
    UNION ALL
    SELECT format('1,%s,%s,%s,%s', t, t, vid, accident) FROM told
    WHERE entered AND lane <> 4 AND accident IS NOT NULL;
  RETURN QUERY SELECT requests(t);
END $$;
