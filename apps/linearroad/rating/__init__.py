"""The rating: the largest L that one machine answers correctly and in time."""
