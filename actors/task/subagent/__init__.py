"""A subagent: the actor that has a session work on a task, and its sides."""
