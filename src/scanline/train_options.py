"""The options of `scanline train`: every setting of a plan, in groups.

Takes a plan and words of the command line; gives the settings that they change. The usual options
come first, then the rules of the protocol, then the settings of each part with the sentence under
their field. Knows settings and no part.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import tyro

from . import settings

_USUAL = (
    *("agent_steps", "seconds", "target_score", "seed", "out", "num_envs", "learning_rate"),
    *("network", "protocol", "engine", "device", "num_threads", "learners", "resume"),
)
"""Options that come first in the help of `train`."""
_ALIASES = {
    "sticky": ("--repeat-action-probability",),
    "frame_skip": ("--frameskip",),
    "episodic_life": ("--terminal-on-life-loss",),
    "stack": ("--frame-stack",),
}
"""Peers' spellings of options."""
_GROUPS = {"rules": "What one agent step means; defaults are those of the recipe's protocol."}
_NOT_OPTIONS = {"name", "summary", "source", "source_sha256", "game"}


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of `train` that belong to the command, not to the run."""

    out: Path | None = None
    """Folder of the run; runs/GAME__RECIPE__SEED__TIME when not given."""
    resume: Path | None = None
    """Go on with this run, or with the one in --out, from its newest checkpoint. Recipe, game and
    settings are the run's; limits and what touches no learning may be changed."""
    if_exists: Literal["refuse", "number"] = "refuse"
    """When --out holds a run already: refuse, or append a number to the folder's name."""
    plan: bool = False
    """Tell what the run will take and reach on this machine, and do not start it."""
    film: bool = False
    """Film a game when the run has ended (extra `video`)."""


def parse(plan: Any, words: list[str], program: str) -> dict[str, Any]:
    """Values of the options that were given: the command's own, and leaves of the plan."""
    groups, shown = _groups(plan)
    usual = groups.pop("")
    for name, fields in groups.items():
        part = dataclasses.make_dataclass(name, fields, kw_only=True, frozen=True)
        part.__doc__ = _GROUPS.get(name, "")
        usual.append((name, part, dataclasses.field(default_factory=part)))
    options = dataclasses.make_dataclass("options", usual, kw_only=True, frozen=True)
    options.__doc__ = plan.recipe.summary
    found: Any = tyro.cli(options, args=words, prog=program, config=(tyro.conf.OmitArgPrefixes,))
    parts = (found, *(getattr(found, name) for name in groups))
    values = {name: value for part in parts for name, value in vars(part).items()}
    typed = {word.split("=")[0].lstrip("-").replace("-", "_") for word in words}
    typed |= {name.removeprefix("no_") for name in typed}
    return {n: values[n] for n, value in shown.items() if values[n] != value or n in typed}


def names(plan: Any) -> list[str]:
    """All options, the usual ones first."""
    return list(_groups(plan)[1])


def _groups(plan: Any) -> tuple[dict[str, list[tuple[str, Any, Any]]], dict[str, Any]]:
    """Options by group, the usual ones without a name first, and the values that help shows."""
    groups: dict[str, list[tuple[str, Any, Any]]] = {"": [], "rules": []}
    shown: dict[str, Any] = {}
    leaves = [*settings.leaves(TrainOptions()), *settings.leaves(plan)]
    by_name = {leaf.name: leaf for leaf in leaves if leaf.name not in _NOT_OPTIONS}
    for name in dict.fromkeys((*_USUAL, *by_name)):
        leaf = by_name[name]
        kind: Any
        kind, value = _kind_and_value(leaf)
        if callable(value):
            continue
        if "rules" in leaf.path:  # help shows what the protocol has
            value = plan.run.rules.effective(plan.protocol)[name]
            kind = get_args(leaf.type)[0]  # without None
        about: Any = {"help": leaf.help, "aliases": _ALIASES.get(name), "metavar": _metavar(kind)}
        if value is None:
            about["help_behavior_hint"] = ""  # the sentence says what that means
        described = Annotated[kind, tyro.conf.arg(**about)]
        # What belongs to no part is the command's or the run's.
        group = "" if name in _USUAL else leaf.path[1] if len(leaf.path) > 2 else "run"
        groups.setdefault(group, []).append((name, described, dataclasses.field(default=value)))
        shown[name] = value
    return groups, shown


def _kind_and_value(leaf: settings.Leaf) -> tuple[Any, Any]:
    """The type that can be typed and the value that help shows: of a network or a protocol of a
    user's own, which may also be named, its name."""
    kinds = get_args(leaf.type)
    if str not in kinds or type(None) in kinds:
        return leaf.type, leaf.value
    return str, settings.plain(leaf.value)


def _metavar(kind: Any) -> str | None:
    """What stands behind an option that may be left out: its type, without the `None`."""
    parts = get_args(kind)
    plain = [part for part in parts if isinstance(part, type) and part is not type(None)]
    return plain[0].__name__.upper() if len(parts) == 2 and len(plain) == 1 else None
