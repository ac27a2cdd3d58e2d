"""`atomic tasks`: the tasks of a running session, looked at and steered from another terminal.

`command` is the subcommand. `records`, `sessions` and `link` reach the program that runs; `board`, `transcript` and the
modules named `..._view` decide what is shown and know neither terminal nor connection; `app`, `pane` and the
modules named `..._page` are the terminal, and the only ones that import textual.
"""
