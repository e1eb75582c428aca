"""Numba kernels: pure functions over arrays and scalars, independent of the engine.

A kernel may emit through `out` and keep arrays in `state`; constants are arguments, and helpers
are in the file of the kernels that use them. tests/reference has a slow version of each.
"""
