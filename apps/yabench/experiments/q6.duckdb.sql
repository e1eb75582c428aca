SELECT a.station AS sensor, a.observation AS ob1, a.value AS value1, b.observation AS obs
FROM items a JOIN items b ON a.station = b.station AND a.value > b.value
WHERE b.value > ${TEMP}
