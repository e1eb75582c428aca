"""Slow definitions of the operators, in plain Python and numpy: what the fast ones must equal."""
