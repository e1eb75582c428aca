"""Cache behaviour of the schedulers on EngineBench."""
