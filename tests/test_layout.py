"""The direction of dependencies, and an environment with NumPy and SciPy alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy

import ramify

ROOT = Path(ramify.__file__).parent
CORE = {"errors", "types", "keys", "ledger", "arrays", "describe"}
LAYERS = (
    CORE,
    {"decode", "bank"},
    {"evidence", "decide", "stop", "search"},
    {"agg", "kinds"},
    {"written"},
    {"models", "tasks", "store"},
    {"verify"},
    {"run", "metrics"},
    {"study"},
    {"report"},
    {"serve", "cli"},
)
LEVEL = {group: level for level, groups in enumerate(LAYERS) for group in groups}


def imports(path: Path) -> Iterator[str]:
    """The groups of ramify that a file imports, whether at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by the full name"
            names = [
                f"{node.module}.{alias.name}" if node.module == "ramify" else str(node.module) for alias in node.names
            ]
        for name in names:
            top, _, rest = name.partition(".")
            if top == "ramify" and rest:
                yield rest.split(".")[0]


def group_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


SOURCES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_group_imports_only_groups_above_it(path: Path) -> None:
    group = group_of(path)
    assert group in LEVEL, f"{group} is not in the layout: give it a layer here and in docs/design.md"
    for other in imports(path):
        allowed = other == group or LEVEL[other] < LEVEL[group] or {other, group} <= CORE
        assert allowed, f"{path.name} ({group}) imports {other}"


def test_the_core_modules_do_not_import_each_other_in_circles() -> None:
    edges = {group: set(imports(ROOT / f"{group}.py")) for group in CORE}
    edges["types"].discard("arrays")  # for the type checker only
    while edges:
        free = {group for group, needs in edges.items() if not needs & edges.keys() - {group}}
        assert free, f"a circle among {sorted(edges)}"
        edges = {group: needs for group, needs in edges.items() if group not in free}


def test_the_core_imports_with_numpy_and_scipy_alone(tmp_path: Path) -> None:
    site = Path(np.__file__).parent.parent
    assert Path(scipy.__file__).parent.parent == site
    for name in ("numpy", "scipy", "numpy.libs", "scipy.libs"):
        if (site / name).exists():
            (tmp_path / name).symlink_to(site / name)
    (tmp_path / "ramify").symlink_to(ROOT)
    core = sorted({group_of(path) for path in SOURCES if LEVEL[group_of(path)] < LEVEL["models"]} | {"metrics"})
    program = f"""
import sys
sys.path = [{str(tmp_path)!r}, *(entry for entry in sys.path if "site-packages" not in entry)]
import importlib
for group in {core!r}:
    importlib.import_module("ramify." + group)
import numpy as np
from ramify.decode import Chain, Temperature, TokenMeasure, TopP
assert Chain(Temperature(0.5), TopP(0.85))(TokenMeasure.of(np.log([0.5, 0.3, 0.2]))).support == 2
known = {{"numpy", "scipy", "ramify", "cython_runtime"}}  # the last is made by SciPy's own extension modules
outside = {{m.split(".")[0] for m in sys.modules}} - set(sys.stdlib_module_names) - known
print(sorted(name for name in outside if not name.startswith("_")))
"""
    result = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]", "the core pulled in something beyond NumPy and SciPy"
