"""The case in which depth-first scheduling loses: an operator with much output before a join."""
