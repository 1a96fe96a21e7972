"""Many runs: a folder of cells, each a run in a process of its own, and how runs compare."""
