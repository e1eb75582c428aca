"""Spark Structured Streaming: stateful processors in Java, in micro-batches of whole seconds."""
