"""Drivers of peers: the same work, done by somebody else's library."""
