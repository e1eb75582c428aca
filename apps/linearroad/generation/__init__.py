"""Generation: parameters, Spark tasks, and the manifest of a generated directory."""
