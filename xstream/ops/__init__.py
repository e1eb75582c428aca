"""The operator library: one operator per file; kernels are independent of the engine."""
