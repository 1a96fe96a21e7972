"""Benchmarks: our own rates beside the peers', on the same work in the same run."""
