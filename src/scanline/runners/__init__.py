"""The loops, and what a run leaves behind: checkpoints, progress, a folder, a live view."""
