"""`xstream linearroad run`: rows into the query, its state and its progress."""
