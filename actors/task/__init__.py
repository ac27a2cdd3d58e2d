"""Tasks: work that outlives the call that started it. The owner's decisions, its desk, and the commands it runs."""
