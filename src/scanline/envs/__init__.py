"""Environments for users: `make`, the vector environment, the console, toy games."""
