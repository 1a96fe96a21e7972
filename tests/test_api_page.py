"""docs/api.md is what the docstrings say, and examples use what is on it."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import scanline

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_page", ROOT / "benchmarks" / "api_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_from_the_docstrings(generator: ModuleType) -> None:
    assert (ROOT / "docs" / "api.md").read_text() == generator.page(), (
        "run: python benchmarks/api_page.py"
    )


def test_every_public_name_is_on_the_page_and_has_a_docstring(generator: ModuleType) -> None:
    modules = {name.removeprefix("scanline.") for name in generator.PUBLIC} - {"scanline"}
    names = {*generator.PUBLIC["scanline"], *modules, "__version__"}
    assert names == set(scanline.__all__)
    for module, public in generator.PUBLIC.items():
        for name in public:
            found = getattr(importlib.import_module(module), name)
            assert name in generator.ALIASES or found.__doc__, f"{module}.{name}"


def test_examples_use_names_of_the_page_only(generator: ModuleType) -> None:
    for file in (ROOT / "examples").glob("*.py"):
        if "recipe = Recipe(" not in file.read_text():
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                public = generator.PUBLIC.get(f"scanline.{node.value.id}")
                assert public is None or node.attr in public, f"{file.name}: {ast.unparse(node)}"
