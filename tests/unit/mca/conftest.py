"""Little distributions in a directory of their own, and a catalog of made-up frameworks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from ompy.mca.component import ApiVersion
from ompy.mca.groups import FrameworkInfo
from ompy.mca.parameter import Parameter
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry

CATALOG = (
    FrameworkInfo(
        "clock",
        "No components.",
        None,
        (
            Parameter("tick", "int", 5, "Length.", level=4, unit="us", minimum=1),
            Parameter(
                "kind", "string", "auto", "Which.", level=1, choices={"auto": "", "fast": ""}
            ),
        ),
    ),
    FrameworkInfo(
        "wire", "Carries bytes.", (3, 1), (Parameter("lanes", "size_t", 2, "N.", level=2),)
    ),
    FrameworkInfo("match", "Matches.", (2, 0)),
)

COMPONENT_SOURCE = """
from ompy.mca.component import Component, NotAvailable
from ompy.mca.parameter import Flag, Parameter, Synonym
import fake_events

class Fake(Component):
    framework = {framework!r}
    name = {name!r}
    version = "7.1"
    api = {api!r}
    parameters = {parameters}

    def open(self, values):
        fake_events.EVENTS.append(("open", self.name))
        {on_open}
        super().open(values)

    def close(self):
        fake_events.EVENTS.append(("close", self.name))
        {on_close}

fake_events.EVENTS.append(("import", {name!r}))
COMPONENT = Fake()
"""


class Site:
    """A directory on `sys.path` that distributions are installed into."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.modules = {"fake_events"}
        self.write_module("fake_events", "EVENTS = []\n")

    @property
    def events(self) -> list[tuple[str, str]]:
        import fake_events

        return fake_events.EVENTS

    def write_module(self, name: str, source: str) -> None:
        (self.path / f"{name}.py").write_text(source)
        self.modules.add(name)

    def distribution(
        self,
        name: str,
        entry_points: str | Mapping[str, Mapping[str, str]],
        version: str = "1.0",
        metadata: str | None = None,
    ) -> None:
        info = self.path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        if metadata:
            (info / "METADATA").write_text(metadata)
        if not isinstance(entry_points, str):
            entry_points = "\n".join(
                f"[{group}]\n" + "\n".join(f"{key} = {value}" for key, value in points.items())
                for group, points in entry_points.items()
            )
        (info / "entry_points.txt").write_text(entry_points)

    def component(
        self,
        name: str,
        *,
        distribution: str = "",
        framework: str = "wire",
        says: tuple[str, str] | None = None,
        api: ApiVersion = (3, 0),
        parameters: str = "()",
        on_open: str = "pass",
        on_close: str = "pass",
        version: str = "1.0",
    ) -> str:
        """A distribution with one component; returns the name of its module."""
        distribution = distribution or f"ompy-{framework}-{name}"
        module = f"fake_{distribution}_{name}".replace("-", "_")
        own_framework, own_name = says or (framework, name)
        source = COMPONENT_SOURCE.format(
            framework=own_framework,
            name=own_name,
            api=api,
            parameters=parameters,
            on_open=on_open,
            on_close=on_close,
        )
        self.write_module(module, source)
        self.distribution(
            distribution, {f"ompy.{framework}": {name: f"{module}:COMPONENT"}}, version
        )
        return module

    def broken(self, name: str, source: str, framework: str = "wire") -> None:
        """A distribution whose module has this source."""
        module = f"fake_broken_{name}"
        self.write_module(module, source)
        self.distribution(
            f"ompy-{framework}-{name}", {f"ompy.{framework}": {name: f"{module}:COMPONENT"}}
        )

    def registry(self, *mca: tuple[str, str], environ: Mapping[str, str] | None = None) -> Registry:
        return Registry(CATALOG, gather_settings(mca, environ or {}, files=[]))


@pytest.fixture
def catalog() -> tuple[FrameworkInfo, ...]:
    return CATALOG


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    path = tmp_path / "site"
    path.mkdir()
    monkeypatch.syspath_prepend(str(path))
    made = Site(path)
    yield made
    for name in made.modules:
        sys.modules.pop(name, None)


def states(registry: Registry, framework: str = "wire") -> dict[str, str]:
    """State of each component, by name; of a name offered twice, of the one that counts."""
    found: dict[str, str] = {}
    for record in registry.records_of(framework):
        found.setdefault(record.name, record.state.value)
    return found


@pytest.fixture
def states_of():
    return states
