"""Checking a run's answers with Spark, independently of the engine.

All expected answers are computed again, from the definitions of the rules, and as tables rather
than as a stream: `rows` reads the input, `vehicles` follows each vehicle,
`accidents` and `quotes` compute what every segment costs in every minute, `accounts` and `history`
answer the requests, and `comparison` compares the result with what the run wrote. Nothing here uses
code of the query, whose answers are in question; a test checks the imports.
"""
