"""One tool call of the model: what it may do to files and processes."""
