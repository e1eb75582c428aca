"""The compiled operators of the query, one file each: numba's language, run by the engine."""
