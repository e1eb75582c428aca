"""The engine: operators, plans, queues, costs, and the bridge to Python operators."""
