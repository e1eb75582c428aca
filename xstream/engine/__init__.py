"""What runs a plan: the operator table, queues, costs, and the bridge to Python operators."""
