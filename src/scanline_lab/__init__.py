"""The lab of scanline: benchmarks beside peers, and papers' experiments measured again.

Gives the command line its verbs `bench` and `reproduce` and its list of experiments, by entry point
(pyproject.toml). Sees scanline, which never imports it. Peers come with the extra `lab`.
"""
