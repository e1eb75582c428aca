SELECT station AS sensor, observation AS obs, window_end FROM windowed WHERE `value` > ${TEMP}
