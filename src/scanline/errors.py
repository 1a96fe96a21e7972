"""Errors that a user can mend: one sentence that says what is wrong and what to do.

Gives `UserError`, the base of all of them, `refusals`, which marks what is refused while a run
is planned, checked or opened, and `look_up`, which refuses an unknown name with the nearest one
where one is near (`nearest`).
Knows no part and no command.

The command line prints the sentence of a `UserError` and ends with exit code 2. Any other error is
a failure inside: it keeps its type and its traceback, and the exit code is 1. A `ValueError` means
a mistake of the user only until the loop has begun, so the phase decides, not the type alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

Row = TypeVar("Row")
_NEAR = 0.6
"""Likeness from which a name is suggested; 1 for equal names."""


class UserError(Exception):
    """Something that the user can mend; the message is one sentence with its remedy."""


class RefusedError(UserError, ValueError):
    """A setting, a file or a combination that cannot be used."""


class MissingPackageError(UserError, ImportError):
    """A package that this choice needs is not installed."""


@contextmanager
def refusals() -> Iterator[None]:
    """Around what is done before a loop begins, also as a decorator: its refusals are the user's.

    A `ValueError` inside becomes a `RefusedError`, an `ImportError` a `MissingPackageError`.
    """
    try:
        yield
    except UserError:
        raise
    except ValueError as error:
        raise RefusedError(str(error)) from error
    except ImportError as error:
        raise MissingPackageError(str(error)) from error


def look_up(what: str, name: str, table: Mapping[str, Row]) -> Row:
    """The row of this name; `ValueError` with the names that there are if there is none."""
    if name not in table:
        raise ValueError(f"There is no {what} {name!r}; {nearest(name, table)}")
    return table[name]


def nearest(name: str, names: Iterable[str], others: str = "") -> str:
    """The end of a refusal: the nearest name where one is near, and where the `others` are found,
    by default all of them."""
    known = list(names)
    near = difflib.get_close_matches(name, known, n=1, cutoff=_NEAR)
    others = others or f"one of {', '.join(known)}."
    if not near:
        return others
    return f"did you mean {near[0]!r}? {others[0].upper()}{others[1:]}"
