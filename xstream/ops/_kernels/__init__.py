"""Numba kernels: pure functions over arrays and scalars that know nothing of the engine.

A kernel may emit through `out` and keep arrays in `state`; constants are arguments, and helpers
stand beside the kernels that use them. Each has a slow twin in tests/reference.
"""
