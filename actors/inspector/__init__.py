"""The way in for inspectors: who may look at the tasks of a running program, and steer them."""
