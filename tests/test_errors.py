"""Refusals before a loop begins are the user's; what fails later keeps its type."""

from __future__ import annotations

import pytest

from scanline.errors import MissingPackageError, RefusedError, UserError, refusals


@refusals()
def prepare(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("raised", "kind", "as_before"),
    [
        (ValueError("a"), RefusedError, ValueError),
        (UnicodeError("a"), RefusedError, ValueError),
        (ModuleNotFoundError("a"), MissingPackageError, ImportError),
    ],
)
def test_what_is_refused_is_a_user_s_error_and_still_its_own_kind(
    raised: Exception, kind: type[UserError], as_before: type[Exception]
) -> None:
    for _ in range(2):  # a decorator must work more than once
        with pytest.raises(kind) as caught:
            prepare(raised)
        assert isinstance(caught.value, as_before)
        assert str(caught.value) == "a"
        assert caught.value.__cause__ is raised


@pytest.mark.parametrize("raised", [TypeError("a"), KeyError("a"), RuntimeError("a"), OSError("a")])
def test_other_errors_go_on_as_they_are(raised: Exception) -> None:
    with pytest.raises(type(raised)) as caught:
        prepare(raised)
    assert caught.value is raised


def test_a_user_s_error_of_its_own_class_stays_that() -> None:
    class OwnError(RefusedError):
        nearest = "x"

    with pytest.raises(OwnError) as caught:
        prepare(OwnError("a"))
    assert caught.value.nearest == "x"
