"""The package gives its public names on demand, and starts without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import scanline


@pytest.mark.parametrize("name", scanline.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(scanline, name) is not None
    assert name in dir(scanline)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        scanline.trian  # noqa: B018


def test_importing_the_package_does_not_import_torch() -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(scanline.__file__).parents[1])}
    program = "import sys, scanline; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, env=env)
