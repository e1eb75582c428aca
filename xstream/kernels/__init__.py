"""Kernels: from `@xs.kernel` to a function pointer, and the cache of compiled code."""
