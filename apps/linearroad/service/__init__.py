"""`xstream linearroad serve`: the query of `run` as a system that answers over the network.

`door` accepts one driver at a time, `feed` passes its rows to the query, `answers` sends what the
query answers, and `job` runs one query per driver.
"""
