"""Lower precision and compiled forward passes of any network.

Takes a built network; changes how its forward pass is computed, not its weights or their names.
Knows no loss: outputs are float32 whatever the precision, so that losses are.
"""

from __future__ import annotations

import types
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils import _pytree

from ..errors import RefusedError
from ..records import Outputs

Precision = Literal["float32", "tf32", "bfloat16"]


def in_precision(network: nn.Module, precision: Precision) -> None:
    """Products in this precision: of this network and its copies, and tf32, or none, of a GPU."""
    is_tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if is_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = is_tf32
    if precision == "bfloat16":
        # A method, so that a deep copy of the network has its own.
        network.forward = types.MethodType(_lowered, network)


def _lowered(network: nn.Module, observations: Tensor) -> Outputs:
    """The forward pass with products in bfloat16; its outputs in float32."""
    with torch.autocast(observations.device.type, dtype=torch.bfloat16):
        outputs = type(network).forward(network, observations)
    return _pytree.tree_map_only(Tensor, Tensor.float, outputs)


def compile_forward(network: nn.Module, example: Tensor) -> None:
    """Compiles the forward pass, for acting and learning; refused where there is no compiler."""
    network.compile(dynamic=False)
    try:
        with torch.no_grad():
            network(example)
    except RuntimeError as error:
        cause = str(error).strip().splitlines()[0]
        raise RefusedError(
            f"--compile needs a compiler that PyTorch can use ({cause}); install one (g++ for a "
            "CPU, triton for a GPU), or leave --compile out."
        ) from error
