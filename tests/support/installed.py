"""Distributions in a directory on the Python path; one offers a BTL that carries nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

COMPONENT = """
from ompy.frameworks.btl import API, BtlComponent
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Flag, Parameter, Synonym

class Pigeon(BtlComponent):
    name = "pigeon"
    version = "2.5"
    api = API
    parameters = (
        Parameter("flock", "int", 3, "How many fly at once.", level=1, unit="birds", minimum=1,
                  synonyms=(Synonym("btl_dove_flock", Flag.DEPRECATED),)),
        Parameter("route", "string", "a:b", "Where they fly.", level=1),
        Parameter("crumbs", "size_t", 4096, "What they eat.", level=4, unit="bytes"),
        Parameter("rest", "bool", False, "Whether they sleep.", level=9),
    )

    def open(self, values):
        if values.flock > 100:
            raise NotAvailable("no pigeonry is that large")
        super().open(values)

COMPONENT = Pigeon()
"""


class Installed:
    """The directory, and what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.modules: list[str] = []
        self.install("ompy-btl-pigeon", "pigeon", "pigeon_post", COMPONENT)

    def install(
        self, distribution: str, name: str, module: str, source: str, group: str = "ompy.btl"
    ) -> None:
        self.modules.append(module)
        info = self.path / f"{distribution.replace('-', '_')}-1.4.dist-info"
        info.mkdir()
        (self.path / f"{module}.py").write_text(source)
        files = {
            "METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.4\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "INSTALLER": "hand\n",
            "entry_points.txt": f"[{group}]\n{name} = {module}:COMPONENT\n",
        }
        for file, text in files.items():
            (info / file).write_text(text)
        record = [f"{module}.py,,", *(f"{info.name}/{file},," for file in (*files, "RECORD"))]
        (info / "RECORD").write_text("\n".join(record) + "\n")

    def forget(self) -> None:
        """Let this process import them anew."""
        for module in self.modules:
            sys.modules.pop(module, None)

    @property
    def environ(self) -> dict[str, str]:
        """For a process that is to find them, and no settings of whoever runs the tests."""
        inherited = {key: value for key, value in os.environ.items() if "OMPY" not in key}
        path = os.pathsep.join([str(self.path), os.environ.get("PYTHONPATH", "")])
        own = {"HOME": str(self.path), "PYTHONPATH": path, "OMPY_SYSCONFDIR": str(self.path)}
        return inherited | own
