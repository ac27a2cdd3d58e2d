"""Verbatim line compaction: a model names lines to drop, and the program rebuilds the text. Pure, without I/O."""
