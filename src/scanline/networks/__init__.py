"""Networks: from observations to the outputs that algorithms read.

Takes Spaces, a name and a seed; gives a torch module. `build` is the only door.
Sees records.py only: no algorithm, optimiser, store or engine.
A published network is a row in trunks.py; heads.py says what comes out.
"""

from .activation_cache import ActivationCache
from .build import Network, OwnNetwork, build, descriptions
from .heads import HeadSettings
from .kernels import (
    FINGERPRINT,
    Kernels,
    own_process,
    share_cores,
    share_cores_here,
    threads_restored,
)

__all__ = [
    "FINGERPRINT",
    "ActivationCache",
    "HeadSettings",
    "Kernels",
    "Network",
    "OwnNetwork",
    "build",
    "descriptions",
    "own_process",
    "share_cores",
    "share_cores_here",
    "threads_restored",
]
