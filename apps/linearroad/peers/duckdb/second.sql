-- The reports of second {t} and what follows from them, then its balances.
CREATE OR REPLACE TEMPORARY TABLE told AS
  WITH numbered AS (
    SELECT vid, xway, seg, lane, dir, pos, spd, file_row
    FROM (SELECT *, row_number() OVER () AS file_row FROM rows) WHERE type = 0
  ), reports AS (  -- of two reports in one second, the first counts
    SELECT * EXCLUDE (file_row) FROM numbered
    QUALIFY row_number() OVER (PARTITION BY vid, xway ORDER BY file_row) = 1
  ), interrupted AS (  -- vehicles with a report less than 30 s ago
    SELECT DISTINCT vid, xway FROM recent SEMI JOIN reports USING (vid, xway)
    WHERE time > {t} - 30
  ), previous AS (
    SELECT * FROM recent ANTI JOIN interrupted USING (vid, xway) WHERE time = {t} - 30
  ), trips AS (
    SELECT r.*, p.quote AS quoted,
           p.vid IS NULL OR p.seg <> r.seg AS entered,
           p.vid IS NOT NULL AND p.seg <> r.seg AS left_segment,
           CASE WHEN p.lane = r.lane AND p.dir = r.dir AND p.pos = r.pos
                THEN p.equal + 1 ELSE 1 END AS equal
    FROM reports r LEFT JOIN previous p USING (vid, xway)
  )
  SELECT trips.*, coalesce(q.lav, -1) AS lav, q.accident,
         equal >= 4 AND lane BETWEEN 1 AND 3 AS stopped,
         CASE WHEN NOT entered THEN quoted WHEN lane = 4 THEN 0 ELSE coalesce(q.toll, 0) END AS quote
  FROM trips LEFT JOIN quotes q USING (xway, dir, seg);

INSERT INTO recent
  SELECT vid, xway, {t}, seg, lane, dir, pos, spd, equal, quote FROM told;
INSERT INTO accounts SELECT vid, quoted FROM told WHERE left_segment AND quoted > 0;
UPDATE stops SET ends = {t} FROM told
  WHERE stops.vid = told.vid AND stops.xway = told.xway AND stops.ends > {t} AND NOT told.stopped;
DELETE FROM stops USING told
  WHERE stops.vid = told.vid AND stops.xway = told.xway AND told.stopped;
INSERT INTO stops
  SELECT vid, xway, lane, dir, pos, {t} - 30 * (equal - 4), {t} + 30 FROM told WHERE stopped;

CREATE OR REPLACE TEMPORARY TABLE answers AS
  SELECT 0::TINYINT AS type, {t}::INTEGER AS time, vid AS who, lav AS value, quote::BIGINT AS amount
  FROM told WHERE entered AND lane <> 4
  UNION ALL
  SELECT 1, {t}, vid, accident, 0 FROM told
  WHERE entered AND lane <> 4 AND accident IS NOT NULL
  UNION ALL
  SELECT 2, {t}, qid, {t}, coalesce(sum(amount), 0)::BIGINT
  FROM (SELECT vid, qid FROM rows WHERE type = 2) LEFT JOIN accounts USING (vid)
  GROUP BY qid;
