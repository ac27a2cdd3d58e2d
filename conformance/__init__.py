"""Tools that speak only the wire: a scripted model server and a client."""
