"""Which session is current: the actor that replaces one by another, and its sides."""
