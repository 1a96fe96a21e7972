"""Many runs: a folder of cells that any number of workers on any number of machines carry out.

Gives `scanline sweep`, `work`, `status` and `compare`. Each run is a process of its own; what joins
workers is a shared folder with atomic renames and nothing else (docs/decisions/0011).
"""
