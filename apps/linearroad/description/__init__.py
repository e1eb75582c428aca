"""What a generated directory contains, in figures and pictures."""
