"""bytewax: a dataflow of stateful operators in Python, one worker."""
