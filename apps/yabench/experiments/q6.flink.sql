SELECT a.station AS sensor, a.observation AS ob1, a.`value` AS value1, b.observation AS obs, a.window_end
FROM (SELECT * FROM windowed WHERE `value` > ${TEMP}) a
JOIN (SELECT * FROM windowed WHERE `value` > ${TEMP}) b
  ON a.station = b.station AND a.window_start = b.window_start AND a.window_end = b.window_end
WHERE a.`value` > b.`value`
