"""Writes a distribution from templates: whole, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Final

from ompy.cli.new.kinds import Kind

COMMON: Final = "common"
SUFFIX: Final = ".tmpl"


def distribution_name(kind: Kind, name: str) -> str:
    """What the distribution is called, and its folder."""
    return f"ompy-{kind.name}-{name.replace('_', '-')}"


def words_for(kind: Kind, name: str) -> dict[str, str]:
    """What stands in the templates for a component of this name."""
    package = f"ompy_{kind.name}_{name}"
    variable = "_".join(("OMPY", "HOOK", name.upper()))
    module = f"{package}.{kind.module}"
    steps = (step.format(name=name) for step in kind.next_steps)
    return {
        "name": name,
        "class_name": "".join(part.capitalize() for part in name.split("_")),
        "package": package,
        "distribution": distribution_name(kind, name),
        "framework": kind.framework,
        "summary": kind.summary,
        "kit": kind.kit,
        "api": str(kind.api),
        "target": f"{module}:{kind.target}" if kind.target else module,
        "variable": variable,
        "why": kind.framework,
        "use": kind.use.format(name=name, variable=variable),
        "judge": kind.judge.format(name=name),
        "page": f"write-a{'n' if kind.name == 'osc' else ''}-{kind.name}.md",
        "contents": _contents(kind, package),
        "next_steps": "\n".join(f"- {step}" for step in steps),
    }


def _contents(kind: Kind, package: str) -> str:
    rows = (
        (f"{package}/{kind.module}.py", f"the {kind.noun}: it works as it is"),
        *((f"{package}/{other}.py", "what it is made of") for other in kind.others),
        ("tests/test_conformance.py", "the tests of ompy's conformance kit, for your CI"),
        ("pyproject.toml", "the distribution, with the entry point by which ompy finds it"),
    )
    lines = [f"| `{path}` | {what} |" for path, what in rows]
    return "\n".join(("| file | what it is |", "|---|---|", *lines))


def rendered(kind: Kind, name: str) -> dict[str, str]:
    """The files of a new distribution: their texts by their paths."""
    words = words_for(kind, name)
    package, module = words["package"], kind.module
    templates = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        f"{package}/__init__.py": "package_init.py",
        f"{package}/{module}.py": "component.py",
        **{f"{package}/{other}.py": f"{other}.py" for other in kind.others},
        "tests/test_conformance.py": "test_conformance.py",
    }
    return {path: _text(kind, template, words) for path, template in templates.items()}


def _text(kind: Kind, template: str, words: Mapping[str, str]) -> str:
    """The kind's own template of a name, or else the one that all have."""
    folder = resources.files(__package__) / "templates"
    own = folder / kind.name / f"{template}{SUFFIX}"
    source = own if own.is_file() else folder / COMMON / f"{template}{SUFFIX}"
    return Template(source.read_text(encoding="utf-8")).substitute(words)


def write_distribution(kind: Kind, name: str, into: Path) -> list[str]:
    """Write the files of a new distribution into a folder of its own.

    Args:
        kind: of the component.
        name: of it.
        into: the folder that gets the new one.

    Returns:
        The paths of what was written, in the new folder.

    Raises:
        FileExistsError: there is something of the folder's name.
        OSError: it cannot be written; nothing is left of it.
    """
    files = rendered(kind, name)
    target = into / distribution_name(kind, name)
    if os.path.lexists(target):
        raise FileExistsError(f"{target} is there already")
    made = Path(tempfile.mkdtemp(prefix=".ompy-new-", dir=into))
    try:
        made.chmod(0o777 & ~_umask())  # as mkdir has it; mkdtemp's is for its owner alone
        for path, text in files.items():
            place = made / path
            place.parent.mkdir(exist_ok=True)
            place.write_text(text, encoding="utf-8")
        made.rename(target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return list(files)


def _umask() -> int:
    """The process's, which can only be read by setting it."""
    found = os.umask(0)
    os.umask(found)
    return found
