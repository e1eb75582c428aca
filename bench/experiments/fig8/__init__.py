"""Figure 8: what single samples, interleaved timestamps, row order and joins cost."""
