SELECT coalesce(avg(`value`) FILTER (WHERE `value` > ${TEMP}), 0) AS `avg`, window_end
FROM windowed
GROUP BY window_start, window_end
