"""Little distributions that go wrong, each in a way of its own, and what is to become of them.

Each has one module, named like the distribution. When it is imported it leaves a file of its name
in the directory `$STRANGER_SIGHTINGS`, if that is set.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import ompy
from ompy.frameworks import btl, coll, pml
from ompy.mca.parameter import TYPES

VERSION = "0.7"
SIGHTINGS = "STRANGER_SIGHTINGS"

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "{version}"

[project.entry-points."ompy.{framework}"]
"{name}" = "{module}:COMPONENT"

[tool.hatch.build.targets.wheel]
packages = ["{module}"]
"""

HEAD = f"""\
import os, pathlib
if {SIGHTINGS!r} in os.environ:
    pathlib.Path(os.environ[{SIGHTINGS!r}], __name__).touch()
"""

# What a component needs to be one; {body} comes into its class.
COMPONENT = """\
from ompy.frameworks.{framework} import {base}
from ompy.mca.component import Component, NotAvailable
from ompy.mca.parameter import Parameter

class Stranger({base}):
    framework, name, version, api = {framework!r}, {name!r}, "1.0", {api}
{body}
COMPONENT = Stranger()
"""
BASES = {"btl": "BtlComponent", "pml": "PmlComponent", "coll": "CollComponent"}
FRAMEWORKS = ("hooks", *BASES)
APIS = {"btl": btl.API, "pml": pml.API, "coll": coll.API}
IDLE = "    def init(self, context): return []"  # a BTL that has nobody to reach

HOOK = """\
from ompy.mca.hookspecs import hookimpl

class Hooks:
    @hookimpl
    def {hook}(self): raise {error}

COMPONENT = Hooks()
"""


class Stranger(NamedTuple):
    """One distribution.

    Attributes:
        distribution: its name.
        framework: of its entry point.
        name: of its entry point.
        source: of its module.
        state: what `ompy-info --plugins` says.
        reason: what it says further.
        said: what a job that did not ask for it says, between `framework:name of distribution
            version: ` and `; `; empty for nothing.
        raised: the line that a traceback ends at if the job asks for it, empty if there is none.
        found_by: who notices: `launcher`, `rank`, or nobody (empty) if it works.
    """

    distribution: str
    framework: str
    name: str
    source: str
    state: str
    reason: str = ""
    said: str = ""
    raised: str = ""
    found_by: str = "launcher"

    @property
    def module(self) -> str:
        return self.distribution.replace("-", "_")

    @property
    def excludable(self) -> bool:
        """Whether a selection can keep it out."""
        return self.framework in FRAMEWORKS

    @property
    def full_name(self) -> str:
        return f"{self.framework}:{self.name}"

    def write(self, parent: Path) -> Path:
        """Make its source folder."""
        folder = parent / self.distribution
        (folder / self.module).mkdir(parents=True)
        values = {**self._asdict(), "module": self.module, "version": VERSION}
        (folder / "pyproject.toml").write_text(PROJECT.format(**values))
        (folder / self.module / "__init__.py").write_text(HEAD + self.source)
        return folder


def component(
    distribution: str,
    state: str,
    reason: str = "",
    *,
    body: str = IDLE,
    framework: str = "btl",
    name: str = "",
    base: str = "",
    api: tuple[int, int] | None = None,
    source: str = "",
    said: str | None = None,
    raised: str = "",
    found_by: str = "launcher",
) -> Stranger:
    """A distribution with one component, called as the last part of the distribution's name."""
    name = name or distribution.rpartition("-")[2]
    source = source or COMPONENT.format(
        framework=framework,
        base=base or BASES[framework],
        name=name,
        api=api or APIS[framework],
        body=body,
    )
    said = f"{state} ({reason})" if said is None else said
    return Stranger(distribution, framework, name, source, state, reason, said, raised, found_by)


def parameter(declaration: str) -> str:
    return f"    parameters = (Parameter({declaration}),)\n{IDLE}"


major, minor = btl.API
NO_TYPE = f"its parameter size: there is no type complex; there are {', '.join(TYPES)}"
SAID_HELLO = "its import wrote to standard output: 'hello from the import'"
HERE = f"this is {major}.{minor} (same major, minor not newer)"
OURS = f"ompy {ompy.__version__}"

STRANGERS = (
    component(
        "ompy-btl-unimportable",
        "broken",
        "ModuleNotFoundError: No module named 'no_such_module_anywhere'",
        source="import no_such_module_anywhere\n",
        raised="import no_such_module_anywhere",
    ),
    component(
        "ompy-btl-quits",
        "broken",
        "SystemExit: 3",
        source="raise SystemExit(3)\n",
        raised="raise SystemExit(3)",
    ),
    component(
        "ompy-btl-hollow",
        "broken",
        "AttributeError: module 'ompy_btl_hollow' has no attribute 'COMPONENT'",
        source="COMPONENTS = []\n",
    ),
    component(
        "ompy-btl-future",
        "incompatible",
        f"made for btl API {major + 1}.0, {HERE}",
        api=(major + 1, 0),
    ),
    component(
        "ompy-btl-newer",
        "incompatible",
        f"made for btl API {major}.{minor + 1}, {HERE}",
        api=(major, minor + 1),
    ),
    component("ompy-btl-older", "opened", api=(major, minor - 1), said="", found_by=""),
    component(
        "ompy-btl-foreign",
        "incompatible",
        "it is no BtlComponent, as a component of btl has to be",
        base="Component",
    ),
    component(
        "ompy-btl-imitator",
        "shadowed",
        f"{OURS} offers it too and comes first",
        name="tcp",
        found_by="",
    ),
    component("ompy-btl-a-twin", "opened", said="", found_by=""),
    component(
        "ompy-btl-z-twin",
        "shadowed",
        f"ompy-btl-a-twin {VERSION} offers it too and comes first",
        found_by="",
    ),
    component(
        "ompy-btl-fragile",
        "open-failed",
        "ValueError: it broke on opening",
        body="    def open(self, values): raise ValueError('it broke on opening')",
        raised="raise ValueError('it broke on opening')",
        found_by="rank",
    ),
    component(
        "ompy-btl-absent",
        "not-available",
        "there is no such device",
        body="    def open(self, values): raise NotAvailable('there is no such device')",
        said="",
        found_by="rank",
    ),
    component(
        "ompy-btl-stumbles",
        "opened",
        body="    def init(self, context): raise LookupError('it fell on starting')",
        said="open-failed (init raised LookupError: it fell on starting)",
        raised="raise LookupError('it fell on starting')",
        found_by="rank",
    ),
    component(
        "ompy-btl-mistaken",
        "opened",
        body="    def init(self, context): return ['no module']",
        said="open-failed (init raised TypeError: mistaken made no BtlModule but 'no module')",
        found_by="rank",
    ),
    component(
        "ompy-pml-stumbles",
        "selected",  # it has the highest priority
        framework="pml",
        body="    parameters = (Parameter('priority', 'int', 100, 'First of all.', level=9),)\n"
        "    def init(self, context, bml): raise LookupError('it fell on starting')",
        said="open-failed (init raised LookupError: it fell on starting)",
        raised="raise LookupError('it fell on starting')",
        found_by="rank",
    ),
    component(
        "ompy-coll-stumbles",
        "opened",
        framework="coll",
        body="    def query(self, communicator): raise LookupError('it fell on asking')",
        said="open-failed (query raised LookupError: it fell on asking)",
        raised="raise LookupError('it fell on asking')",
        found_by="rank",
    ),
    component(
        "ompy-btl-type",
        "incompatible",
        NO_TYPE,
        body=parameter("'size', 'complex', 1, 'How much.', level=1"),
        raised="'size', 'complex', 1",
    ),
    component(
        "ompy-btl-helpless",
        "incompatible",
        "its parameter size: it has no help",
        body=parameter("'size', 'int', 1, '', level=1"),
        raised="'size', 'int', 1, ''",
    ),
    component(
        "ompy-btl-level",
        "incompatible",
        "its parameter size: there is no level 10; there are 1 to 9",
        body=parameter("'size', 'int', 1, 'How much.', level=10"),
        raised="level=10",
    ),
    component(
        "ompy-btl-default",
        "incompatible",
        "its parameter size cannot be 'much', its default: not a whole number",
        body=parameter("'size', 'int', 'much', 'How much.', level=1"),
    ),
    component(
        "ompy-btl-clash",
        "incompatible",
        "its parameter btl_tcp_if_include is already one of btl:tcp",
        name="tcp_if",
        body=parameter("'include', 'string', '', 'Which.', level=1"),
    ),
    component(
        "ompy-btl-base",
        "incompatible",
        "base is no name for a component: it stands for the framework itself",
    ),
    component(
        "ompy-btl-dashed",
        "incompatible",
        "the name of a component is made of letters, digits and _",
        name="dash-ed!",
    ),
    component(
        "ompy-btl-long",
        "incompatible",
        "the name of a component has 63 characters at most, not 64",
        name="n" * 64,
    ),
    component(
        "ompy-btl-chatty",
        "opened",
        SAID_HELLO,
        body=f"    print('hello from the import')\n{IDLE}",
        said=SAID_HELLO,
        found_by="",
    ),
    Stranger(
        "ompy-blt-typo",
        "blt",
        "typo",
        "",
        "incompatible",
        reason := "there is no framework blt; did you mean btl?",
        f"incompatible ({reason})",
        found_by="",
    ),
    Stranger(
        "ompy-nonsense",
        "nonsense",
        "some",
        "",
        "incompatible",
        reason := "there is no framework nonsense",
        f"incompatible ({reason})",
        found_by="",
    ),
    component(
        "ompy-hooks-grumpy",
        "loaded",
        framework="hooks",
        source=HOOK.format(hook="ompy_job_launching", error="RuntimeError('no launching')"),
        said="ompy_job_launching raised RuntimeError: no launching",
        found_by="",
    ),
    component(
        "ompy-hooks-sulky",
        "loaded",
        framework="hooks",
        source=HOOK.format(hook="ompy_rank_started", error="SystemExit('no starting')"),
        said="ompy_rank_started raised SystemExit: no starting",
        found_by="",
    ),
)
