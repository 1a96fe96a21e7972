"""Rules of a run that are not those of its named protocol.

Takes a protocol; gives it with some rules changed. Knows no engine: what an engine cannot honour
it refuses by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..protocols import (
    Colour,
    Crop,
    FireReset,
    LifeLoss,
    NoopUnit,
    Pooling,
    Protocol,
    Resize,
    RewardClip,
    StackPadding,
    TerminalFrame,
)


@dataclass(frozen=True, kw_only=True)
class RuleChanges:
    """What one agent step means, where it is not as the protocol has it; None keeps its rule."""

    sticky: float | None = None
    """Chance, on every frame, that the previous action is repeated; 0.25 is usual."""
    frame_skip: int | None = None
    """Raw frames that one action lasts."""
    episodic_life: bool | None = None
    """Whether a lost life ends the return."""
    noop_max: int | None = None
    """Most NOOPs after a reset; 0 for none."""
    noop_min: int | None = None
    """Fewest NOOPs after a reset."""
    stack: int | None = None
    """Frames per observation."""
    reward_clip: RewardClip | None = None
    """Learner's reward: as it is, its sign, or clamped to -1..1."""
    full_action_space: bool | None = None
    """All 18 actions instead of the game's minimal set."""
    episode_limit_frames: int | None = None
    """Raw frames after which an episode is truncated; 0 for never."""
    fire_reset: FireReset | None = None
    """Buttons pressed after a reset where the game has them."""
    life_loss: LifeLoss | None = None
    """What a lost life does, in full."""
    height: int | None = None
    """Rows of an observation."""
    width: int | None = None
    """Columns of an observation."""
    colour: Colour | None = None
    """grey: the palette's grey; luma: from red, green and blue; rgb; ram: 128 bytes."""
    resize: Resize | None = None
    """area, linear: as OpenCV does them; bilinear, nearest: as Pillow; half: mean of 2x2; none."""
    crop: Crop | None = None
    """Rows dropped before the resize."""
    pooling: Pooling | None = None
    """Pixel-wise maximum over the last two frames: none, of their grey, or of their colours."""
    stack_padding: StackPadding | None = None
    """What fills the stack after a reset, before its newest frame."""
    noop_unit: NoopUnit | None = None
    """Whether a NOOP lasts one frame or one agent step."""
    terminal_frame: TerminalFrame | None = None
    """Which picture the last step of a game shows."""

    def applied(self, protocol: Protocol) -> Protocol:
        """The protocol with these rules in place of its own."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return protocol.replace(**given)

    def effective(self, protocol: Protocol) -> dict[str, Any]:
        """The rules of a protocol under the names of this record."""
        return {**vars(protocol), "episodic_life": protocol.life_loss_ends_return}
