"""What `ompy-info` tells of the installation: versions, paths, how it was built.

Nothing here looks at parameters or components. Keys are those of reference openmpi.md 2.3.2 where
there is one.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Final, NamedTuple

import ompy
from ompy.cli.forms import described
from ompy.mca.parameters.parameter_files import configuration_directory, parameter_set_directory
from ompy.mpi.constants import SUBVERSION, VERSION

LAUNCHER: Final = "ompy-run"
TYPES_OF_PATH: Final = (
    *("prefix", "exec_prefix", "bindir", "sbindir", "libdir", "incdir", "mandir", "pkglibdir"),
    *("libexecdir", "datarootdir", "datadir", "sysconfdir", "sharedstatedir", "localstatedir"),
    *("infodir", "pkgdatadir", "pkgincludedir"),
)  # reference openmpi.md 2.1


class Fact(NamedTuple):
    """One fact about the installation.

    Attributes:
        label: for people.
        key: for programs.
        value: may be any text.
    """

    label: str
    key: str
    value: str


def versions() -> list[Fact]:
    """Of ompy, of the MPI standard it follows, of Python."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return [
        Fact("Package", "package", f"ompy {ompy.__version__}"),
        Fact("ompy", "ompy:version:full", ompy.__version__),
        Fact("MPI API", "mpi-api:version:full", f"{VERSION}.{SUBVERSION}.0"),
        Fact("Python", "python:version:full", python),
    ]


def path_facts(wanted: str, environ: Mapping[str, str]) -> list[Fact]:
    """One kind of path, or `all`.

    Raises:
        KeyError: there is no such kind.
    """
    every = paths(environ)
    chosen = TYPES_OF_PATH if wanted == "all" else [wanted]
    return [Fact(kind.capitalize(), f"path:{kind}", every[kind]) for kind in chosen]


def paths(environ: Mapping[str, str]) -> dict[str, str]:
    """Where things are, or by the GNU conventions would be, in the order of `TYPES_OF_PATH`."""
    scheme = _scheme()
    prefix = sysconfig.get_path("data", scheme)
    exec_prefix = os.path.dirname(sysconfig.get_path("scripts", scheme))
    package = os.path.dirname(os.path.abspath(ompy.__file__ or ""))
    share = os.path.join(prefix, "share")
    found = {
        "prefix": prefix,
        "exec_prefix": exec_prefix,
        "bindir": sysconfig.get_path("scripts", scheme),
        "sbindir": os.path.join(exec_prefix, "sbin"),
        "libdir": os.path.dirname(package),
        "incdir": os.path.dirname(package),  # declarations for Cython lie beside the sources
        "mandir": os.path.join(share, "man"),
        "pkglibdir": package,
        "libexecdir": os.path.join(exec_prefix, "libexec"),
        "datarootdir": share,
        "datadir": share,
        "sysconfdir": configuration_directory(environ),
        "sharedstatedir": os.path.join(prefix, "com"),
        "localstatedir": os.path.join(prefix, "var"),
        "infodir": os.path.join(share, "info"),
        "pkgdatadir": parameter_set_directory(),
        "pkgincludedir": package,
    }
    return {kind: found[kind] for kind in TYPES_OF_PATH}


def _scheme() -> str:
    """How the Python installation that our commands are in is laid out."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    for scheme in schemes:
        if os.path.exists(os.path.join(sysconfig.get_path("scripts", scheme), LAUNCHER)):
            return scheme
    return schemes[0]


def form() -> Fact:
    """Whether the modules on the way of a message are compiled."""
    return Fact("Hot modules", "option:compiled", described())


def architecture() -> list[Fact]:
    """What Python was built for."""
    return [Fact("Configured architecture", "config:arch", sysconfig.get_platform())]


def hostname() -> list[Fact]:
    """Of the machine this runs on."""
    return [Fact("Host", "config:host", platform.node())]


def short_configuration() -> list[Fact]:
    """The part of the configuration that is shown when nothing is asked for."""
    return [
        form(),
        Fact("Thread support", "option:threads", "MPI_THREAD_MULTIPLE: yes"),
    ]


def configuration() -> list[Fact]:
    """How ompy and what it stands on were made."""
    _, built = platform.python_build()
    return [
        *short_configuration(),
        Fact("Python executable", "python:executable", sys.executable),
        Fact("Python built on", "build:timestamp", built),
        Fact("C compiler of Python", "compiler:c:version", platform.python_compiler()),
        Fact("Operating system", "config:os", f"{platform.system()} {platform.release()}"),
        *(
            Fact(f"Library {name}", f"library:{name}:version", version)
            for name, version in _libraries()
        ),
    ]


def _libraries() -> Iterator[tuple[str, str]]:
    """Versions of the distributions ompy needs, and of those it can use."""
    try:
        required = metadata.requires("ompy") or []
    except metadata.PackageNotFoundError:
        return  # run from a tree that is not installed
    wanted = [line for line in required if not re.search(r"extra\s*==", line)]
    names = [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in wanted]
    for name in [*names, "numpy"]:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed"
