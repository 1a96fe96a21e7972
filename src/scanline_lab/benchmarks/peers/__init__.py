"""Peers: other libraries that do the same work, each driven by a file of its own.

Gives `lacking`: what must be installed before a peer can be driven. Imports no peer.
"""

from __future__ import annotations

from importlib.util import find_spec

_DISTRIBUTIONS = {
    "stable_baselines3": "stable-baselines3",
    "cv2": "opencv-python-headless",
    "envpool": "envpool",
}
"""Of the extra `lab`, by the module that is imported."""
_MODULES = {
    "sb3": ("stable_baselines3", "cv2"),
    "sb3-vector": ("stable_baselines3",),
    "envpool": ("envpool",),
}


def lacking(peer: str) -> str | None:
    """A sentence with what the peer needs and how to get it; None where all is installed."""
    missing = [_DISTRIBUTIONS[name] for name in _MODULES[peer] if find_spec(name) is None]
    if not missing:
        return None
    needed = " and ".join(missing)
    return f"Peer '{peer}' needs {needed}; get it with: pip install 'scanline[lab]'"
