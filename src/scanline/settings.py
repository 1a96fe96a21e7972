"""Settings: many small frozen dataclasses seen as one flat list of names.

Takes any frozen dataclass whose fields may be dataclasses again; gives every leaf with its type,
value and sentence, and copies with some leaves changed. Knows no particular setting.

Each part keeps its own settings next to the code that reads them. A user still wants to write
`learning_rate=1e-3` without knowing which part reads it: leaf names are unique within a tree, and
this module finds them. The string under a field is its help. Only help reads sources: every command
and every learner makes trees when it starts.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from pathlib import PurePath
from types import UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from .errors import nearest

Tree = TypeVar("Tree")


@dataclass(frozen=True)
class Leaf:
    """One setting of a tree; its type and its sentence are found when they are asked for."""

    path: tuple[str, ...]
    value: Any
    owner: type
    """The dataclass that has the field."""

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def type(self) -> Any:
        return _type_hints(self.owner)[self.name]

    @property
    def help(self) -> str:
        return field_sentences(self.owner).get(self.name, "")


_NUMBERS = {int: Integral, float: Real}
_LARGEST = 2**64
"""Whole numbers beyond it belong to no setting, and cannot become floats."""
_WORDS = {
    int: "a whole number of at most 64 bits",
    float: "a number",
    str: "text",
    bool: "True or False",
    type(None): "None",
}


def leaves(tree: Any) -> Iterator[Leaf]:
    """Every setting of a dataclass and of the dataclasses inside it, in order."""
    for field in dataclasses.fields(tree):
        value = getattr(tree, field.name)
        if _is_part(value):
            for leaf in leaves(value):
                yield Leaf((field.name, *leaf.path), leaf.value, leaf.owner)
        else:
            yield Leaf((field.name,), value, type(tree))


def _is_part(value: Any) -> bool:
    """Whether a value has settings of its own; one with a `setting_name` is a single setting."""
    is_tree = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return is_tree and not hasattr(value, "setting_name")


@cache
def _type_hints(cls: type) -> Mapping[str, Any]:
    return get_type_hints(cls)


@cache
def field_sentences(cls: type) -> Mapping[str, str]:
    """The string literal under each field of a dataclass, those of its bases included."""
    sentences: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if dataclasses.is_dataclass(owner):
            sentences |= _own_sentences(owner)
    return sentences


def _own_sentences(cls: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # made without a file, e.g. typed into a prompt
        return {}
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for first, second in zip(body.body, body.body[1:], strict=False):
        is_field = isinstance(first, ast.AnnAssign) and isinstance(first.target, ast.Name)
        if is_field and isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant):
            found[first.target.id] = inspect.cleandoc(str(second.value.value))  # type: ignore[attr-defined]
    return found


def override(tree: Tree, changes: Mapping[str, Any]) -> Tree:
    """A copy with leaves changed by name; an unknown name is answered with the nearest."""
    by_name = {leaf.name: leaf.path for leaf in leaves(tree)}
    by_path = {}
    for name, value in changes.items():
        plain = name.replace("-", "_")
        if plain not in by_name:
            others = "`scanline train RECIPE GAME --help` names all of them."
            near = nearest(plain, by_name, others)
            raise ValueError(f"There is no setting {name!r} here; {near}")
        by_path[by_name[plain]] = value
    return cast(Tree, _replaced(tree, by_path))


def _replaced(tree: Any, changes: Mapping[tuple[str, ...], Any]) -> Any:
    """All changes of one dataclass at once: checks see the whole, not halves of it."""
    fields = {path[0]: value for path, value in changes.items() if len(path) == 1}
    for name, value in fields.items():
        _check_type(type(tree), name, value)
    for name in dict.fromkeys(path[0] for path in changes if len(path) > 1):
        inner = {path[1:]: value for path, value in changes.items() if path[0] == name}
        fields[name] = _replaced(getattr(tree, name), inner)
    return dataclasses.replace(tree, **fields)


def _check_type(cls: type, name: str, value: Any) -> None:
    try:
        hint = _type_hints(cls)[name]
    except NameError:  # a user's own class, with a type that is not imported at run time
        return
    if not fits(value, hint):
        raise ValueError(f"{name}={value!r:.60} must be {_words(hint)}.")


def fits(value: Any, hint: Any) -> bool:
    """Whether a setting of this type may have the value; a type that JSON lacks takes anything."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in arguments)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        return len(value) == len(kinds) and all(map(fits, value, kinds))
    if origin is Callable:
        return callable(value)
    if hint in _NUMBERS:
        too_large = isinstance(value, Integral) and abs(int(value)) > _LARGEST
        return type(value) is not bool and isinstance(value, _NUMBERS[hint]) and not too_large
    return isinstance(value, hint) if hint in (bool, str, type(None)) else True


def _words(hint: Any) -> str:
    """A type as a sentence names it."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_words, get_args(hint)))
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(repr, get_args(hint)))}"
    return _WORDS.get(hint, str(hint))


def at_least(least: float, settings: object, *names: str, remedy: str = "") -> None:
    """Refuses values below `least`; for the `__post_init__` of settings."""
    for name in names:
        value = getattr(settings, name)
        if not value >= least:
            rule = f"be at least {least}" if least else "not be negative"
            raise ValueError(f"{name}={value} must {rule}{remedy and '; ' + remedy}.")


def fractions(settings: object, *names: str) -> None:
    """Refuses values outside 0..1; for the `__post_init__` of settings."""
    for name in names:
        if not 0.0 <= getattr(settings, name) <= 1.0:
            raise ValueError(f"{name}={getattr(settings, name)} must lie in 0..1.")


def check_unique(tree: Any) -> None:
    """Refuses a tree in which two leaves share a name."""
    seen: dict[str, tuple[str, ...]] = {}
    for leaf in leaves(tree):
        if leaf.name in seen:
            raise ValueError(
                f"Two settings are called {leaf.name!r}: {'.'.join(seen[leaf.name])} and "
                f"{'.'.join(leaf.path)}; rename one."
            )
        seen[leaf.name] = leaf.path


def to_dict(tree: Any) -> dict[str, Any]:
    """A nested dictionary fit for JSON: dataclasses by field, callables by their name."""
    return {field.name: plain(getattr(tree, field.name)) for field in dataclasses.fields(tree)}


def plain(value: Any) -> Any:
    """As JSON gives it back: tuples become lists, and what JSON cannot hold its name."""
    if _is_part(value):
        return {"type": type(value).__name__, **to_dict(value)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, PurePath):
        return str(value)
    name = getattr(value, "setting_name", getattr(value, "__qualname__", None))
    return name or type(value).__qualname__


def restore(tree: Tree, record: Mapping[str, Any]) -> Tree:
    """A copy with the values that `to_dict` wrote; what JSON cannot hold stays as it is."""
    recorded = flat(record)
    changes = {}
    for leaf in leaves(tree):
        value = recorded.get(".".join(leaf.path), ABSENT)
        can_hold = leaf.value is None or isinstance(leaf.value, (bool, int, float, str, tuple))
        # A name in place of what JSON cannot hold: the setting was changed to it.
        is_other = isinstance(value, str) and value != plain(leaf.value)
        if (can_hold and value is not ABSENT) or (is_other and str in get_args(leaf.type)):
            changes[leaf.name] = tuple(value) if isinstance(value, list) else value
    return override(tree, changes)


class _Absent:
    """The value of a setting that is not there, as None may be a value."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


class Difference(NamedTuple):
    """One setting that is not what it was; `ABSENT` where it has no value."""

    name: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.name} was {self.before!r} and is now {self.now!r}"


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """Settings that differ, by dotted name."""
    old, new = flat(plain(before)), flat(plain(now))
    names = dict.fromkeys((*old, *new))
    pairs = (Difference(name, old.get(name, ABSENT), new.get(name, ABSENT)) for name in names)
    return [pair for pair in pairs if pair.before != pair.now]


def nested_deeper(value: Any, levels: int) -> bool:
    """Whether objects and lists stand within each other more often than that."""
    if not isinstance(value, (Mapping, list)):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(nested_deeper(each, levels - 1) for each in inner)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted name."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found
