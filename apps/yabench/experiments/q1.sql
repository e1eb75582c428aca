SELECT station AS sensor, observation AS obs, time AS first_ms, time AS last_ms
FROM items
WHERE value > ${TEMP}
