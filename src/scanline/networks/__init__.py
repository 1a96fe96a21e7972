"""Networks: from observations to the outputs that algorithms read.

Takes Spaces, a name and a seed; gives a torch module. `build` is the only door.
Sees records.py only: no algorithm, optimiser, store or engine.
A published network is a row in trunks.py; heads.py says what comes out.
"""

from .activation_cache import ActivationCache
from .build import Network, OwnNetwork, build, descriptions, has_kernels, has_memory
from .convolutions import Features, rows_of
from .heads import Head, HeadSettings, Hidden
from .kernels import (
    FINGERPRINT,
    Kernels,
    own_process,
    share_cores,
    share_cores_here,
    threads_restored,
)
from .noisy import NoisyLinear
from .precision import Precision, compile_forward, in_precision
from .used_kernels import used_kernels

__all__ = [
    "FINGERPRINT",
    "ActivationCache",
    "Features",
    "Head",
    "HeadSettings",
    "Hidden",
    "Kernels",
    "Network",
    "NoisyLinear",
    "OwnNetwork",
    "Precision",
    "build",
    "compile_forward",
    "descriptions",
    "has_kernels",
    "has_memory",
    "in_precision",
    "own_process",
    "rows_of",
    "share_cores",
    "share_cores_here",
    "threads_restored",
    "used_kernels",
]
