SELECT coalesce(avg(value), 0) AS avg FROM items WHERE value > ${TEMP}
