-- Minutes count from 0. The rules are those of docs/linear-road-rules.md.
CREATE TABLE tolls (xway INTEGER, vid INTEGER, toll INTEGER[69]);
-- The reports of the last 30 to 90 seconds with what is known of their trips: how many equal places
-- end with a report, and the toll quoted for its segment. Rows are only appended; old ones are
-- dropped once a minute.
CREATE TABLE recent (
  vid INTEGER, xway INTEGER, time INTEGER, seg INTEGER, lane INTEGER, dir INTEGER, pos INTEGER,
  spd INTEGER, equal INTEGER, quote INTEGER
);
-- Stops from the fourth equal report on; a report that goes on with a stop replaces its end.
CREATE TABLE stops (
  vid INTEGER, xway INTEGER, lane INTEGER, dir INTEGER, pos INTEGER, begins INTEGER, ends INTEGER
);
-- Charges, added up once a minute.
CREATE TABLE accounts (vid INTEGER, amount BIGINT);
CREATE TABLE statistics (
  minute INTEGER, xway INTEGER, dir INTEGER, seg INTEGER, cars INTEGER, speed DOUBLE
);
-- What is quoted in the current minute.
CREATE TABLE quotes (
  xway INTEGER, dir INTEGER, seg INTEGER, lav INTEGER, toll INTEGER, accident INTEGER
);
CREATE TEMPORARY TABLE told (
  vid INTEGER, xway INTEGER, seg INTEGER, lane INTEGER, dir INTEGER, pos INTEGER, spd INTEGER,
  quoted INTEGER, entered BOOLEAN, left_segment BOOLEAN, equal INTEGER, lav INTEGER,
  accident INTEGER, stopped BOOLEAN, quote INTEGER
);
CREATE TEMPORARY TABLE answers (type TINYINT, time INTEGER, who INTEGER, value INTEGER, amount BIGINT);
