"""The Linear Road queries as a graph of operators: one tuple of columnar SigSegs a second."""
