"""PML components as a stranger would write them, for the tests of wrapping."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.pml import Pml, PmlComponent, PmlWrapper, PmlWrapperComponent
from ompy.mca.component import Component, NotAvailable
from ompy.mca.parameter import Parameter

CONTRACT = [name for name in vars(Pml) if not name.startswith("_")]
MADE_OF_OTHERS = {"send", "recv", "isend_waited"}


class Through(PmlWrapper):
    """Hands everything on and is a plain Python object."""

    def __init__(self, inner: Pml, name: str) -> None:
        super().__init__(inner)
        self.name = name


class Listening(Through):
    """Writes down every call it hands on."""

    def __init__(self, inner: Pml, name: str) -> None:
        super().__init__(inner, name)
        self.calls: list[str] = []


def _noting(name: str):
    def call(self, *arguments):
        self.calls.append(name)
        return getattr(PmlWrapper, name)(self, *arguments)

    return call


for _name in CONTRACT:
    if _name not in MADE_OF_OTHERS:
        setattr(Listening, _name, _noting(_name))


class Wrapping(PmlWrapperComponent):
    """Wraps, or says why not."""

    version: ClassVar[str] = "1.0"
    api: ClassVar[tuple[int, int]] = (2, 1)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("priority", "int", 0, "Order among wrappers.", level=9),
        Parameter("reason", "string", "", "Why it declines.", level=9),
        Parameter("away", "string", "", "Ranks it is not available on.", level=9),
        Parameter("fails", "bool", False, "Whether asking it raises.", level=9),
    )

    def __init__(self, name: str, kind: type[Through]) -> None:
        self.name = name  # type: ignore[misc]
        self._kind = kind

    def declines(self) -> str:
        if self.values.fails:
            raise ValueError("what was the question?")
        return None if self.values.reason == "None" else self.values.reason

    def wrap(self, context, inner):
        if str(context.rank) in self.values.away.split("+"):
            raise NotAvailable(f"rank {context.rank} is not for me")
        return self._kind(inner, self.name)


class OldFashioned(PmlComponent):
    """A PML made for the contract before there were wrappers."""

    name: ClassVar[str] = "old"
    version: ClassVar[str] = "1.0"
    api: ClassVar[tuple[int, int]] = (2, 0)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("priority", "int", 90, "In the selection of a PML.", level=9),
    )

    def init(self, context, bml):
        from ompy_components.pml.ob1.component import COMPONENT
        from ompy_components.pml.ob1.module import Ob1

        values = {parameter.name: parameter.default for parameter in COMPONENT.parameters}
        return Ob1(context, bml, type("Values", (), values)())


class Neither(Component):
    """Something in the framework pml that keeps no contract of it."""

    framework: ClassVar[str] = "pml"
    name: ClassVar[str] = "neither"
    version: ClassVar[str] = "1.0"
    api: ClassVar[tuple[int, int]] = (2, 0)


THROUGH = Wrapping("through", Through)
ONE = Wrapping("one", Listening)
TWO = Wrapping("two", Listening)
OLD = OldFashioned()
NEITHER = Neither()
