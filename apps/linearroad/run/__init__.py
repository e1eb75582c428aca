"""`xstream linearroad run`: the input, state and progress of the query."""
