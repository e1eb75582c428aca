"""xstream: queries over signal segments."""
