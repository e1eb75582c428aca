SELECT station AS sensor, observation AS obs FROM items WHERE value > ${TEMP}
