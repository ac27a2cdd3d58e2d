"""One request to a model provider: building it, streaming it, reading it."""
