"""JavaScript libraries of the pages, read from installed packages without importing these (an
import takes a second)."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from harness.errors import LeaderboardError


def plotly() -> str:
    """Plotly, from the package ``plotly``."""
    return _read("plotly", "package_data/plotly.min.js")


def datatables() -> str:
    """DataTables (sorting and searching of HTML tables), from the package ``itables``, as a script
    that sets ``window.DataTable``."""
    return as_script(_read("itables", "html/dt_bundle.js"), "DataTable")


def as_script(module: str, name: str) -> str:
    """An ES module without imports as a plain script whose default export is the global ``name``.

    Browsers load no ES module from ``file://``. The module must end with one ``export{a as b,c as
    default}``. The rest is wrapped in a function to keep its variables local.
    """
    exports = list(re.finditer(r"\bexport\s*\{([^}]*)\}", module))
    default = re.search(r"([\w$]+)\s+as\s+default\b", exports[-1][1]) if exports else None
    if default is None:
        raise LeaderboardError(
            "itables: its dt_bundle.js has no default export in a form that this version of archbench can read"
        )
    body = module[: exports[-1].start()] + f"window.{name}={default[1]};" + module[exports[-1].end() :]
    return f'(()=>{{"use strict";{body}\n}})();\n'


def _read(package: str, file: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LeaderboardError(f"the package {package} is not installed: pip install {package}")
    path = Path(spec.submodule_search_locations[0]) / file
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LeaderboardError(f"{path}: {error.strerror}; reinstall the package: pip install -U {package}") from error
