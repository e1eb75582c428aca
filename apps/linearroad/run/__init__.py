"""`xstream linearroad run`: rows into the query, its workers, their state and their progress."""
