"""Section III.B.1: what a copy of a segment costs beside an FFT and beside X * X."""
