-- The trigger implementation: a trigger for each report as it is inserted, one for the requests of
-- the second when all of its rows are in. Reports are not stored themselves.

CREATE TEMPORARY TABLE answers (line text) ON COMMIT DELETE ROWS;

CREATE FUNCTION on_report() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  t int := NEW.time;
  v record;
  q record;
  goes_on bool;
  entered bool;
  same int := 1;
  new_quote int := 0;
BEGIN
  IF t / 60 > (SELECT minute FROM clock) THEN
    PERFORM begin_minute(t / 60);
  END IF;
  SELECT * INTO v FROM vehicles WHERE vid = NEW.vid AND xway = NEW.xway;
  IF v.time = t THEN
    RETURN NULL;  -- a second report in one second
  END IF;
  goes_on := v.time IS NOT DISTINCT FROM t - 30;
  entered := NOT goes_on OR v.seg <> NEW.seg;
  IF goes_on AND v.lane = NEW.lane AND v.dir = NEW.dir AND v.pos = NEW.pos THEN
    same := v.equal + 1;
  END IF;
  INSERT INTO speeds VALUES (NEW.xway, NEW.dir, NEW.seg, NEW.vid, NEW.spd);
  IF goes_on AND entered AND v.quote > 0 THEN
    INSERT INTO accounts VALUES (NEW.vid, v.quote)
    ON CONFLICT (vid) DO UPDATE SET balance = accounts.balance + excluded.balance;
  END IF;
  IF NOT entered THEN
    new_quote := v.quote;
  ELSIF NEW.lane <> 4 THEN
    SELECT * INTO q FROM quotes WHERE (xway, dir, seg) = (NEW.xway, NEW.dir, NEW.seg);
    new_quote := coalesce(q.toll, 0);
    INSERT INTO answers
      VALUES (format('0,%s,%s,%s,%s,%s', NEW.vid, t, t, coalesce(q.lav, -1), new_quote));
    IF q.accident IS NOT NULL THEN
      INSERT INTO answers VALUES (format('1,%s,%s,%s,%s', t, t, NEW.vid, q.accident));
    END IF;
  END IF;
  IF v.vid IS NULL THEN
    INSERT INTO vehicles VALUES
      (NEW.vid, NEW.xway, t, NEW.seg, NEW.lane, NEW.dir, NEW.pos, same, new_quote);
  ELSE
    UPDATE vehicles SET (time, seg, lane, dir, pos, equal, quote) =
      (t, NEW.seg, NEW.lane, NEW.dir, NEW.pos, same, new_quote)
    WHERE vid = NEW.vid AND xway = NEW.xway;
  END IF;
  IF same >= 4 AND NEW.lane BETWEEN 1 AND 3 THEN
    INSERT INTO stops
      VALUES (NEW.vid, NEW.xway, NEW.lane, NEW.dir, NEW.pos, t - 30 * (same - 4), t + 30)
    ON CONFLICT (vid, xway) DO UPDATE
      SET (lane, dir, pos, begins, ends) =
        (excluded.lane, excluded.dir, excluded.pos, excluded.begins, excluded.ends);
  ELSIF v.equal >= 4 THEN  -- only then can a stop be going on
    UPDATE stops SET ends = t WHERE vid = NEW.vid AND xway = NEW.xway AND ends > t;
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION on_second() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  t int := (SELECT max(time) FROM input);
BEGIN
  IF t IS NOT NULL THEN
    INSERT INTO answers SELECT requests(t);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER report BEFORE INSERT ON input
  FOR EACH ROW WHEN (NEW.type = 0) EXECUTE FUNCTION on_report();
CREATE TRIGGER second AFTER INSERT ON input FOR EACH STATEMENT EXECUTE FUNCTION on_second();
