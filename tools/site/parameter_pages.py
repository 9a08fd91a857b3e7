"""Reference: components, parameters and performance variables, from the registry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from tools.site.markdown import cell, code, table, toctree

ROOT: Final = Path(__file__).resolve().parents[2]
INFO: Final = "import sys; from ompy.cli.info import main; sys.exit(main())"
INTRODUCTION: Final = """# Components and parameters

A parameter is set by `--mca NAME VALUE`, by the environment variable `OMPY_MCA_NAME`, or in a file
([ompy-info](../../ompy-info.md)).

Levels say who needs a parameter: 1 to 3 for users, 4 to 6 for who tunes, 7 to 9 for developers; of
each three the first is basic, the second for details, the third all.
The *source* of a value is where it was set: what is shown here are defaults.
`ompy-info --why NAME` says it for a value in force.

"""
Parameter = dict[str, Any]


def pages() -> dict[str, str]:
    """A page for each framework, a list of components, and the performance variables."""
    document = ask("--all")
    parameters: dict[str, list[Parameter]] = defaultdict(list)
    for parameter in document["parameters"]:
        parameters[parameter["framework"]].append(parameter)
    components = document["components"]
    made = {
        f"parameters/{framework}.md": framework_page(framework, found, components)
        for framework, found in parameters.items()
    }
    listed = (
        [code(f"{one['framework']}/{one['name']}"), _home(one), cell(", ".join(one["aliases"]))]
        for one in components
    )
    counted = len(document["parameters"])
    made["parameters/index.md"] = (
        INTRODUCTION
        + table(["component", "declared in", "other names"], listed)
        + f"\nThere are {counted} parameters.\n\n"
        + toctree(["variables", *parameters])
    )
    made["parameters/variables.md"] = _variables(ask("--pvars")["pvars"])
    return made


def ask(*words: str) -> dict[str, Any]:
    """What `ompy-info --json` answers where nothing is set."""
    clean = {key: text for key, text in os.environ.items() if not key.startswith("OMPY_")}
    clean |= {"HOME": "/nonexistent", "OMPY_SYSCONFDIR": "/nonexistent"}
    command = [sys.executable, "-c", INFO, *words, "--json"]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def framework_page(
    framework: str, parameters: list[Parameter], components: list[dict[str, Any]]
) -> str:
    """The parameters of a framework, component by component."""
    groups: dict[str, list[Parameter]] = defaultdict(list)
    for parameter in parameters:
        groups[parameter["component"]].append(parameter)
    homes = {one["name"]: _home(one) for one in components if one["framework"] == framework}
    parts = [f"# {framework}\n"]
    for component, found in groups.items():
        title = f"{framework}/{component}" if component != "base" else f"{framework} itself"
        parts.append(f"## {title}\n")
        if component in homes:
            parts.append(f"Declared in {homes[component]}.\n")
        rows = map(_row, sorted(found, key=lambda one: (one["level"], one["name"])))
        columns = ["parameter", "level", "type, unit", "default", "source", "what it does"]
        parts.append(table(columns, rows))
    return "\n".join(parts)


def _home(component: dict[str, Any]) -> str:
    """Where a component is declared, with its README."""
    path = Path(component["file"]).relative_to(ROOT)
    readme = path.parent / "README.md"
    if (ROOT / readme).exists():
        return f"[`{path}`](../../../{readme})"
    return code(path)


def _row(parameter: Parameter) -> list[str]:
    name = code(parameter["name"])
    other = [one["name"] for one in parameter["synonyms"]]
    if other:
        name += "<br>also " + ", ".join(map(code, other))
    about = cell(parameter["help"])
    words = [one["word"] for one in parameter["enumerator"]] or parameter["choices"]
    if words:
        about += " One of " + ", ".join(map(code, words)) + "."
    value = str(parameter["text"]).replace(sys.prefix, "PREFIX").replace(str(ROOT), "PREFIX")
    kind = ", ".join(word for word in (parameter["type"], parameter["unit"]) if word)
    cells = [name, str(parameter["level"]), cell(kind), code(value)]
    return [*cells, cell(parameter["source"]), about]


def _variables(found: list[dict[str, Any]]) -> str:
    rows = (
        [code(one["name"]), one["class"], cell(one["unit"]), cell(one["help"])] for one in found
    )
    head = (
        "# Performance variables\n\n"
        "What ranks count while they run. `ompy-run --pvars NAME,...` shows them at the end of a "
        "job, and [`ompy.pvars`](../python/pvars.rst) reads them in a program.\n\n"
    )
    return head + table(["variable", "class", "unit", "what it counts"], rows)
