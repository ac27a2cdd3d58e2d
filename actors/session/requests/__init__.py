"""What each command does in a session, by group of commands. Part of the session actor."""
