"""A session: its tree, its journal, the agent loop and the queue."""
