"""Protocols: what one agent step means, as data.

Takes a name and overrides in the spelling of the peers; gives a frozen `Protocol`.
Knows no engine: an engine says by itself which of these options it can honour.

The field compares scores that were measured under silently different rules. Here every rule is
a field, a named preset is a row, and the row travels with every run and every score.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from .errors import look_up, nearest

Pooling = Literal["none", "grey", "rgb"]
Colour = Literal["grey", "luma", "rgb", "ram", "as-is"]
Resize = Literal["none", "area", "linear", "bilinear", "nearest", "half"]
Crop = Literal["none", "bottom-2", "both-ends", "first-210"]
StackPadding = Literal["zeros", "repeat", "noop-steps", "start-and-noop-steps"]
NoopUnit = Literal["frames", "agent-steps"]
FireReset = Literal[
    "none", "before-noops", "after-noops", "fire-then-second", "noop-fire-up", "fire-step"
]
LifeLoss = Literal[
    "ignore", "end-return", "noop-step", "noops-again", "noop-fire-up", "full-reset", "fire"
]
TerminalFrame = Literal["real", "stale", "last-two"]
RewardClip = Literal["none", "sign", "clamp"]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The rules between an agent and a console. Frames are raw frames, 1/60 s each."""

    name: str
    frame_skip: int = 4
    """Frames that one action lasts (the upper end, where the skip is random)."""
    frame_skip_min: int = 4
    """Lower end of a random skip; equal to `frame_skip` for a fixed one."""
    sticky: float = 0.0
    """Chance, on every frame, that the previous action is repeated."""
    pooling: Pooling = "grey"
    """Pixel-wise maximum over the last two frames: none, of their grey, or of their colours."""
    colour: Colour = "grey"
    """grey: the palette's grey; luma: 0.299 R + 0.587 G + 0.114 B; rgb; ram: 128 bytes."""
    resize: Resize = "area"
    """area, linear: as OpenCV does them; bilinear, nearest: as Pillow; half: mean of 2x2; none."""
    height: int = 84
    """Rows of an observation."""
    width: int = 84
    """Columns of an observation."""
    crop: Crop = "none"
    """Rows dropped before the resize: the last two, the first and the last, or all below 210."""
    stack: int = 4
    """Frames per observation."""
    stack_padding: StackPadding = "repeat"
    """What fills the stack after a reset, before its newest frame: zeros; that frame again; the
    frames of NOOP steps, S in all (PAAC); or the first frame and those of S - 1 NOOP steps (GA3C).
    These steps last a frame skip each, count as no agent steps, and their rewards are dropped."""
    full_action_space: bool = False
    """All 18 actions instead of the game's minimal set."""
    noop_min: int = 0
    """Fewest NOOPs after a reset."""
    noop_max: int = 30
    """Most NOOPs after a reset; 0 for none."""
    noop_unit: NoopUnit = "frames"
    """Whether a NOOP lasts one frame or one agent step."""
    fire_reset: FireReset = "none"
    """Buttons pressed after a reset where the game has them; fire-step: FIRE for an agent step,
    then the NOOPs."""
    life_loss: LifeLoss = "ignore"
    """What a lost life does: end the return only, and then which buttons; or reset the game; or,
    with `fire`, nothing but FIRE in place of the next frame's action."""
    terminal_frame: TerminalFrame = "real"
    """Real: the frame in which the game ended; stale (ALE, Gymnasium): the picture before it;
    last-two (EnvPool): real if that frame is one of the last two of its step, else stale."""
    reward_clip: RewardClip = "sign"
    """Learner's reward: as it is, its sign, or clamped to -1..1. The raw one is always kept."""
    episode_limit_frames: int = 108_000
    """Raw frames after which an episode is truncated; 0 for never."""

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_ranges(self)

    @property
    def life_loss_ends_return(self) -> bool:
        """Whether a lost life cuts the return."""
        return self.life_loss not in ("ignore", "fire")

    @property
    def life_loss_presses(self) -> bool:
        """Whether frames are played between a lost life and the next decision."""
        return self.life_loss in ("noop-step", "noops-again", "noop-fire-up")

    @property
    def setting_name(self) -> str:
        """Its name as one setting of a recipe; other rules than the preset's are said so."""
        return self.name if PRESETS.get(self.name) == self else f"{self.name} (own rules)"

    def replace(self, **overrides: Any) -> Protocol:
        """A copy with some rules changed; peers' spellings are accepted."""
        return dataclasses.replace(self, **translate(self, overrides))

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@functools.cache
def choices() -> dict[str, tuple[Any, ...]]:
    """Fields with a fixed set of values, and these."""
    hints = get_type_hints(Protocol)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def _check_choices(protocol: Protocol) -> None:
    for field, allowed in choices().items():
        value = getattr(protocol, field)
        if value not in allowed:
            raise ValueError(f"{field}={value!r} is unknown; choose one of {allowed}.")


def _check_ranges(protocol: Protocol) -> None:
    if not 1 <= protocol.frame_skip_min <= protocol.frame_skip:
        raise ValueError(
            f"frame_skip={protocol.frame_skip} with frame_skip_min={protocol.frame_skip_min}: "
            "both must be at least 1 and the minimum not above the maximum."
        )
    if not 0.0 <= protocol.sticky <= 1.0:
        raise ValueError(f"sticky={protocol.sticky} is no probability; use 0 to 1, usually 0.25.")
    if not 0 <= protocol.noop_min <= protocol.noop_max:
        raise ValueError(
            f"noop_min={protocol.noop_min} and noop_max={protocol.noop_max} are no range from 0 up."
        )
    for field in ("height", "width", "stack"):
        if getattr(protocol, field) < 1:
            raise ValueError(f"{field}={getattr(protocol, field)} must be at least 1.")
    if protocol.episode_limit_frames < 0:
        raise ValueError("episode_limit_frames must be 0 (no limit) or positive.")


BASELINES = Protocol(
    name="baselines", noop_min=1, fire_reset="fire-then-second", life_loss="noop-step"
)

PAAC = Protocol(
    name="paac",
    resize="nearest",
    stack_padding="noop-steps",
    noop_min=1,
    reward_clip="clamp",
    episode_limit_frames=0,
)
GA3C = Protocol(
    name="ga3c",
    pooling="none",
    colour="luma",
    resize="bilinear",
    stack_padding="start-and-noop-steps",
    reward_clip="clamp",
)
FAST_DQN = Protocol(
    name="fast-dqn",
    resize="linear",
    stack_padding="zeros",
    noop_unit="agent-steps",
    fire_reset="fire-step",
    life_loss="end-return",
)

PRESETS: Mapping[str, Protocol] = {
    preset.name: preset
    for preset in (
        BASELINES,
        Protocol(
            name="nature",
            pooling="rgb",
            colour="luma",
            resize="linear",
            stack_padding="zeros",
            life_loss="end-return",
            reward_clip="clamp",
            episode_limit_frames=18_000,
        ),
        Protocol(
            name="machado",
            sticky=0.25,
            stack_padding="zeros",
            full_action_space=True,
            noop_max=0,
            episode_limit_frames=18_000,
        ),
        Protocol(
            name="gymnasium-v5",
            sticky=0.25,
            pooling="none",
            colour="rgb",
            resize="none",
            height=210,
            width=160,
            stack=1,
            noop_max=0,
            reward_clip="none",
        ),
        dataclasses.replace(BASELINES, name="baselines-unstacked", stack=1),
        Protocol(
            name="ale-vector",
            stack_padding="zeros",
            noop_max=29,
            fire_reset="before-noops",
            terminal_frame="stale",
            reward_clip="clamp",
        ),
        Protocol(
            name="envpool",
            noop_min=1,
            fire_reset="after-noops",
            life_loss="noops-again",
            crop="first-210",
            terminal_frame="last-two",
        ),
        Protocol(
            name="accelerated",
            resize="half",
            height=104,
            width=80,
            crop="bottom-2",
            stack_padding="zeros",
            fire_reset="noop-fire-up",
            life_loss="noop-fire-up",
        ),
        PAAC,
        dataclasses.replace(PAAC, name="paac-repo", noop_min=0),
        GA3C,
        dataclasses.replace(GA3C, name="ga3c-repo", noop_max=0, sticky=0.25),
        Protocol(
            name="cule",
            stack_padding="zeros",
            noop_max=29,
            life_loss="fire",
            episode_limit_frames=72_000,
        ),
        FAST_DQN,
        dataclasses.replace(FAST_DQN, name="fast-dqn-repo", pooling="none"),
        Protocol(
            name="as-is",
            frame_skip=1,
            frame_skip_min=1,
            pooling="none",
            colour="as-is",
            resize="none",
            stack=1,
            noop_max=0,
            reward_clip="none",
            episode_limit_frames=0,
        ),
    )
}

SUMMARIES: Mapping[str, str] = {
    "baselines": "OpenAI baselines, CleanRL, SB3: grey max, area 84x84, no-ops, FIRE, lives.",
    "baselines-unstacked": "The same with one frame per observation, for networks with memory.",
    "nature": "Mnih 2015: colour max, luminance, bilinear 84x84, five minutes of play.",
    "machado": "Machado 2018: sticky actions, all 18 actions, lives not used.",
    "gymnasium-v5": "Gymnasium's ALE/*-v5: colour frames, sticky actions, raw rewards.",
    "ale-vector": "ale-py's AtariVectorEnv bit for bit, its stale terminal frame included.",
    "envpool": "EnvPool's Atari environments.",
    "accelerated": "Stooke and Abbeel: 104x80 by halving, NOOP-FIRE-UP after each lost life.",
    "paac": "Clemente 2017: nearest 84x84, 1 to 30 no-ops, stack filled by NOOP steps, no limit.",
    "paac-repo": "The same as PAAC's released code has it: 0 to 30 no-ops.",
    "ga3c": "Babaeizadeh 2017: last frame only, luminance, bilinear 84x84, 0 to 30 no-ops.",
    "ga3c-repo": "The same on Gym's Deterministic-v0, as released: sticky actions, no no-ops.",
    "cule": "Dalton 2020: grey max, area 84x84, FIRE after a lost life, 18,000 steps an episode.",
    "fast-dqn": "Daley and Amato 2021: linear 84x84, FIRE, no-ops in agent steps, lost life ends.",
    "fast-dqn-repo": "The same as its released code has it: the last frame, no maximum of two.",
    "as-is": "Any Gymnasium environment, untouched.",
}


def get(name: str | Protocol) -> Protocol:
    """The preset of this name; one that is no name is itself."""
    return look_up("protocol", name, PRESETS) if isinstance(name, str) else name


_ALIASES: Mapping[str, str] = {
    "frameskip": "frame_skip",
    "repeat_action_probability": "sticky",
    "stack_num": "stack",
    "frame_stack": "stack",
    "img_height": "height",
    "img_width": "width",
    "max_num_frames_per_episode": "episode_limit_frames",
}


def _fixed_skip(_: Protocol, value: Any) -> dict[str, Any]:
    """A number, or a pair (first, past the last) that each step draws from."""
    ends = value if isinstance(value, tuple) else (value,)
    if any(isinstance(end, bool) or not hasattr(end, "__index__") for end in ends):
        raise ValueError(
            f"Invalid frameskip type: {value!r} is no whole number and no pair of them."
        )
    if len(ends) not in (1, 2):
        raise ValueError(f"Invalid stochastic frameskip {value}, expected length 2: (first, end).")
    if ends[0] <= 0:
        raise ValueError(f"Invalid frameskip of {value}, frameskip must be positive, at least 1.")
    if len(ends) == 2 and ends[0] >= ends[1]:
        raise ValueError(
            f"Invalid stochastic frameskip {value}, lower bound is greater than upper bound; the "
            "upper one is the first number that is not drawn."
        )
    return {"frame_skip": ends[-1] - (len(ends) - 1), "frame_skip_min": ends[0]}


def _life(protocol: Protocol, value: Any) -> dict[str, Any]:
    kept, ends = protocol.life_loss, protocol.life_loss_ends_return
    if value:
        return {"life_loss": kept if ends else "end-return"}
    return {"life_loss": "ignore" if ends else kept}


def _clip(protocol: Protocol, value: Any) -> dict[str, Any]:
    return {"reward_clip": value} if isinstance(value, str) else _clip_on(protocol, value)


def _limit(protocol: Protocol, value: Any) -> dict[str, Any]:
    return {"episode_limit_frames": 0 if value is None else int(value) * protocol.frame_skip}


def _noops(protocol: Protocol, value: Any) -> dict[str, Any]:
    lowered = {"noop_min": value} if value < protocol.noop_min else {}
    return {"noop_max": value, **lowered}


_SEEN_AS: Mapping[str, Colour] = {"ram": "ram", "rgb": "rgb", "grayscale": "grey"}


def _obs_type(_: Protocol, value: Any) -> dict[str, Any]:
    if value not in _SEEN_AS:
        raise ValueError(f"obs_type={value!r} is unknown; choose one of {', '.join(_SEEN_AS)}.")
    return {"colour": _SEEN_AS[value]}


Translator = Callable[[Protocol, Any], dict[str, Any]]


def _switch(field: str, default: str) -> Translator:
    """On: what the preset has, or the default where it has none. Off: none."""

    def translated(protocol: Protocol, is_on: Any) -> dict[str, Any]:
        kept = getattr(protocol, field)
        return {field: (default if kept == "none" else kept) if is_on else "none"}

    return translated


def _choose(field: str, on: str, off: str) -> Translator:
    return lambda _, is_on: {field: on if is_on else off}


_clip_on = _switch("reward_clip", "sign")

_TRANSLATORS: Mapping[str, Translator] = {
    "frame_skip": _fixed_skip,
    **dict.fromkeys(("episodic_life", "terminal_on_life_loss"), _life),
    "reward_clip": _clip,
    "clip_reward": _clip,
    "reward_clipping": _clip,
    "use_fire_reset": _switch("fire_reset", "after-noops"),
    "max_episode_steps": _limit,
    "noop_max": _noops,
    "maxpool": _choose("pooling", "grey", "none"),
    **dict.fromkeys(("gray_scale", "grayscale"), _choose("colour", "grey", "rgb")),
    "obs_type": _obs_type,
}


def translate(protocol: Protocol, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides in any peer's spelling as fields of `Protocol`."""
    fields: dict[str, Any] = {}
    # A new frame skip comes first: a limit in agent steps is counted with it.
    for given in sorted(overrides, key=lambda word: _ALIASES.get(word, word) != "frame_skip"):
        name, value = _ALIASES.get(given, given), overrides[given]
        if "frame_skip" in fields:
            skips = ("frame_skip", "frame_skip_min")
            protocol = dataclasses.replace(protocol, **{skip: fields[skip] for skip in skips})
        if name in _TRANSLATORS:
            fields |= _TRANSLATORS[name](protocol, value)
        elif name in Protocol.__dataclass_fields__ and name != "name":
            fields[name] = value
        else:
            known = [*Protocol.__dataclass_fields__, *_ALIASES, *_TRANSLATORS]
            raise ValueError(f"No protocol has an option {given!r}; {nearest(given, known)}")
    return fields
