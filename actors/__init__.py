"""Who owns what: one actor for each owner, talking only by frozen messages."""
