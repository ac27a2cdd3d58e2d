"""The world of the simulation: everything that the actors reach, without threads, files or clock."""
