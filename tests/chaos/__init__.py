"""Faults at every step of a run with checkpoints: `make chaos`, or `python -m tests.chaos`."""
