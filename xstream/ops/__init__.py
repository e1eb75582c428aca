"""The operator library: one operator, one file; kernels know nothing of the engine."""
