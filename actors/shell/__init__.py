"""One shell request: its process group, its output, its answer."""
