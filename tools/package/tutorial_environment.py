"""An environment of its own for a page that installs something: what is installed stays there.

It has ompy from the environment that is tried, and pip, hatchling and pytest from the one that this
runs in, so that no package index is needed. Nothing else of that one can be imported.
"""

from __future__ import annotations

import os
import sys
import venv
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

TOOLS: Final = ("pip", "hatchling", "editables", "pytest")
SCRIPTS: Final = {
    "pip": "pip._internal.cli.main:main",
    "pytest": "pytest:main",
    "ompy": "ompy.cli.main:main",
    "ompy-run": "ompy.cli.run:main",
    "ompy-info": "ompy.cli.info:main",
}


def make_environment(folder: Path, variables: dict[str, str]) -> dict[str, str]:
    """Make one in a folder.

    Args:
        folder: that is there already.
        variables: of a shell in which the environment that is tried is active.

    Returns:
        The variables of a shell in which the new one is.
    """
    home, tools = folder / "environment", folder / "tools"
    venv.create(home, symlinks=True)
    tools.mkdir()
    for name in sorted(with_requirements(TOOLS)):
        link_distribution(name, tools)
    tried = Path(variables["PATH"].partition(os.pathsep)[0]).parent
    sites = [*tried.glob("lib/python*/site-packages"), tools]
    own = next(home.glob("lib/python*/site-packages"))
    lines = [f"import site; site.addsitedir({str(site)!r})\n" for site in sites]
    (own / "tried.pth").write_text("".join(lines))
    for name, target in SCRIPTS.items():
        module, _, function = target.partition(":")
        script = home / "bin" / name
        script.write_text(
            f"#!{home / 'bin' / 'python'}\nimport sys\nfrom {module} import {function}\n"
            f"sys.exit({function}())\n"
        )
        script.chmod(0o755)
    return {
        **variables,
        "PATH": f"{home / 'bin'}{os.pathsep}{variables['PATH']}",
        "PIP_NO_BUILD_ISOLATION": "0",  # "no": the build backend is here
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }


def with_requirements(names: tuple[str, ...]) -> set[str]:
    """Distributions, and what they require here."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        for text in metadata.requires(name) or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                left.append(wanted.name)
    return found


def link_distribution(name: str, folder: Path) -> None:
    """Have a folder show what a distribution of this interpreter has installed."""
    distribution = metadata.distribution(name)
    parts = {path.parts[0] for path in distribution.files or () if ".." not in path.parts}
    for part in sorted(parts - {"__pycache__"}):
        link = folder / part
        if not link.exists():
            link.symlink_to(Path(str(distribution.locate_file(part))))


if __name__ == "__main__":
    print(*sorted(with_requirements(TOOLS)), file=sys.stdout)
