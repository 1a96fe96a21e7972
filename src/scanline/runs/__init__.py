"""What surrounds a loop and what a run leaves behind: log, checkpoints, limits, live view."""
