"""Which kernels compute a network, in one sentence.

Takes a network on its device; gives a sentence for the user, with the reason wherever PyTorch
computes a layer. Knows no plan and no run.
"""

from __future__ import annotations

from torch import nn

from .build import Network
from .convolutions import ConvTrunk, has_dense_kernel, weights_of
from .dense import DenseOutputs, DenseStream
from .kernels import Kernels


def used_kernels(network: nn.Module, kernels: Kernels) -> str:
    """`kernels` is what the run asks for."""
    device = next(network.parameters()).device
    own, others = _native_layers(network), _layers(network)
    left = [name for name in others if name not in own]
    if device.type != "cpu":
        return f"Kernels: PyTorch's, on {device}."
    if not left:
        return f"Kernels: our own for all {len(own)} layers."
    if own:
        return f"Kernels: our own for {len(own)} layers, PyTorch's for {', '.join(left)}."
    return f"Kernels: PyTorch's, {_reason(network, kernels)}."


def _reason(network: nn.Module, kernels: Kernels) -> str:
    if kernels == "torch":
        return "as --kernels torch asks"
    if not isinstance(network, Network):
        return "for the network is a module of your own; a head on a named network keeps ours"
    return "for ours have no such layers, or do not take frames of this shape"


def _layers(network: nn.Module) -> list[str]:
    """Names of all modules with weights of their own."""
    return [name for name, module in network.named_modules() if weights_of([module])]


def _native_layers(network: nn.Module) -> set[str]:
    """Names of layers that our kernels compute on a CPU."""
    found = set[str]()
    for name, module in network.named_modules():
        inner = [f"{name}.{each}" for each in _layers(module) if each]
        is_trunk = isinstance(module, ConvTrunk) and module.sizes is not None
        if is_trunk or isinstance(module, DenseStream):
            found |= set(inner)
        elif isinstance(module, DenseOutputs):
            takes = has_dense_kernel(weights_of([module]), module.in_features)
            found |= {name} if takes else set()
    return found
