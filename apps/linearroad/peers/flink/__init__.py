"""Flink: a DataStream job in Java, with keyed state, event time and timers."""
