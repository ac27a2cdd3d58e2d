"""The wire and the files as types: every record that travels or is stored, without any I/O."""
