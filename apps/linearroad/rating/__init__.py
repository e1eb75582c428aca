"""The rating: the largest L that one machine answers, rightly and in time."""
