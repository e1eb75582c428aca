"""Pages for people to look at. Empty so far: what `linearroad describe` draws lives with it."""
