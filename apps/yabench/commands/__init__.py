"""The commands of `xstream yabench`, one per file."""
