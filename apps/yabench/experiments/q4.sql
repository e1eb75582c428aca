SELECT scope, coalesce(sum(total) / sum(number), 0) AS avg
FROM scopes LEFT JOIN (
  SELECT time, sum(value) AS total, count(*) AS number FROM items WHERE value > ${TEMP} GROUP BY time
) ON time >= start_ms AND time < end_ms
GROUP BY scope
