"""YABench: a benchmark of windowed stream engines that checks every answer.

A stream is generated, an engine of any kind is fed with it, its results are recorded, and an oracle
compares them with the right ones, window by window:

    bindings     results of queries as multisets, and precision and recall over them
    windows      windows, report policies, and what an engine should report when
    stream       streams in their two forms: RDF triples and records
    answers      recorded results of engines
    oracle       the right results: SPARQL over triples, SQL over records
    judge        pairs results with windows, strictly or graciously, and says what is wrong
    csrbench     the seven queries of CSRBench as built-in tests
"""
