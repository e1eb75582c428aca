SELECT scope, coalesce(avg(value), 0) AS avg
FROM scopes LEFT JOIN items ON time >= start_ms AND time < end_ms AND value > ${TEMP}
GROUP BY scope
