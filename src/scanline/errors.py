"""Errors that a user can mend: one sentence that says what is wrong and what to do.

Gives `UserError`, the base of all of them, and `refusals`, which marks what is refused while a run
is planned, checked or opened. Knows no part and no command.

The command line prints the sentence of a `UserError` and ends with exit code 2. Any other error is
a failure inside: it keeps its type and its traceback, and the exit code is 1. A `ValueError` means
a mistake of the user only until the loop has begun, so the phase decides, not the type alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
