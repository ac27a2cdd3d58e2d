"""The process: start, wiring, settings and shutdown of `atomic`."""
