"""One update at a learning rate of the test's choice."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from scanline.interfaces import Metric
from scanline.parameters import LocalParameters


def apply_at(
    parameters: LocalParameters, losses: Mapping[str, Tensor], learning_rate: float
) -> Mapping[str, Metric]:
    """Gives the gradient norms by the names of the groups."""
    parameters.learning_rate = lambda agent_steps: learning_rate
    metrics = parameters.apply(parameters.read(), losses, agent_steps=0)
    assert metrics["charts/learning_rate"] == learning_rate
    norms = {name.split("gradient_norm")[1]: n for name, n in metrics.items() if "norm" in name}
    return {name.removeprefix("_") or "all": norm for name, norm in norms.items()}
