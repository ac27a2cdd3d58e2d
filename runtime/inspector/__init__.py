"""`atomic tasks`: the tasks of a running session, looked at and steered from another terminal.

`command` is the subcommand. `records`, `find` and `link` reach the program that runs; `board`, `transcript` and the
modules named `..._view` decide what is shown and know neither terminal nor connection; `app`, `pages` and `lines_view`
are the terminal, and the only ones that import textual.
"""
