SELECT a.station AS sensor, a.observation AS ob1, a.value AS value1, b.observation AS obs,
  least(a.time, b.time) AS first_ms, greatest(a.time, b.time) AS last_ms
FROM items a JOIN items b ON a.station = b.station AND a.value > b.value
WHERE b.value > ${TEMP} AND abs(a.time - b.time) < ${WSIZE_ms} + 2 * ${WSLIDE_ms}
