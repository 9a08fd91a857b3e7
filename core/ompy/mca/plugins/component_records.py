"""What is known about each component some distribution offers, and how far it has come."""

from __future__ import annotations

import enum
from typing import Any, Final

from ompy.mca.component import Component


class State(enum.Enum):
    """How far a component has come, in the words `ompy-info --plugins` shows."""

    FOUND = "found"
    BLOCKED = "blocked"
    BROKEN = "broken"
    INCOMPATIBLE = "incompatible"
    SHADOWED = "shadowed"
    LOADED = "loaded"
    OPENED = "opened"
    OPEN_FAILED = "open-failed"
    NOT_AVAILABLE = "not-available"
    SELECTED = "selected"
    NOT_SELECTED = "not-selected"


# Ranks of one process share a registry: a component one of them refused may be another's choice.
TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    State.FOUND: frozenset(
        {State.BLOCKED, State.SHADOWED, State.BROKEN, State.INCOMPATIBLE, State.LOADED}
    ),
    State.LOADED: frozenset({State.OPENED, State.OPEN_FAILED, State.NOT_AVAILABLE, State.BROKEN}),
    State.OPENED: frozenset(
        {State.SELECTED, State.NOT_SELECTED, State.NOT_AVAILABLE, State.OPEN_FAILED}
    ),
    State.NOT_AVAILABLE: frozenset({State.SELECTED, State.NOT_AVAILABLE, State.OPEN_FAILED}),
    State.NOT_SELECTED: frozenset(
        {State.SELECTED, State.NOT_AVAILABLE, State.NOT_SELECTED, State.OPEN_FAILED}
    ),
    State.SELECTED: frozenset({State.SELECTED, State.OPEN_FAILED}),
    State.BLOCKED: frozenset(),
    State.BROKEN: frozenset(),
    State.INCOMPATIBLE: frozenset(),
    State.SHADOWED: frozenset(),
    State.OPEN_FAILED: frozenset(),
}

# Found out from metadata and imports alone: holds in every process of the job.
SETTLED: Final = frozenset({State.BLOCKED, State.BROKEN, State.INCOMPATIBLE, State.SHADOWED})

FAILED: Final = frozenset({State.BROKEN, State.INCOMPATIBLE, State.OPEN_FAILED})

# What a job goes on without and says so, and what strict plug-ins do not tolerate.
WANTING: Final = FAILED | {State.SHADOWED}


class ComponentRecord:
    """One component (or package of hooks) that one distribution offers.

    Attributes:
        framework: it is offered for; `hooks` for life-cycle hooks.
        name: of its entry point.
        distribution: that offers it.
        version: of the distribution.
        target: `module:attribute` of the object.
        aliases: other names it and its parameters go by (reference openmpi.md 1.5.3).
        state: how far it has come.
        reason: why it is in this state, where that is not plain.
        traceback: of what went wrong, empty if nothing raised.
        component: the object, once loaded.
        remark: what is odd about it though it can be used, empty if nothing is.
        told: the warning about it that whoever runs the job has been given already.
        story: every state so far with its reason, the present one last.
    """

    __slots__ = (
        "aliases",
        "component",
        "distribution",
        "framework",
        "name",
        "reason",
        "remark",
        "state",
        "story",
        "target",
        "told",
        "traceback",
        "version",
    )

    def __init__(
        self,
        framework: str,
        name: str,
        distribution: str,
        version: str,
        target: str,
        *,
        state: State = State.FOUND,
        reason: str = "",
    ) -> None:
        self.framework = framework
        self.name = name
        self.distribution = distribution
        self.version = version
        self.target = target
        self.aliases: tuple[str, ...] = ()
        self.state = state
        self.reason = reason
        self.traceback = ""
        self.component: Component | None = None
        self.remark = ""
        self.told = ""
        self.story = [(state, reason)]

    def __repr__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.full_name} of {self.offered_by}: {self.state.value}{reason}"

    @property
    def offered_by(self) -> str:
        """The distribution with its version."""
        return f"{self.distribution} {self.version}".rstrip()

    @property
    def full_name(self) -> str:
        """`<framework>:<name>`."""
        return f"{self.framework}:{self.name}"

    @property
    def in_tree(self) -> bool:
        """Whether it comes with ompy itself."""
        return self.distribution == "ompy"

    @property
    def file(self) -> str:
        """The source file of its module, found without importing it; empty when unknown."""
        from ompy.mca.plugins.locating import source_file

        return source_file(self.target)

    @property
    def warning(self) -> str:
        """What to tell whoever runs a job without it, or with it; empty if nothing is wrong."""
        if self.state in WANTING:
            return repr(self)
        return f"{self.full_name} of {self.offered_by}: {self.remark}" if self.remark else ""

    def move(self, state: State, reason: str = "", traceback: str = "") -> None:
        """Go on to `state`.

        Raises:
            RuntimeError: no way leads there from the present state; the text tells the story.
        """
        if state not in TRANSITIONS[self.state]:
            story = ", ".join(past.value for past, _ in self.story)
            raise RuntimeError(f"{self.full_name} cannot become {state.value} after {story}")
        self.state = state
        self.reason = reason
        self.traceback = traceback
        self.story.append((state, reason))

    def to_dict(self) -> dict[str, Any]:
        """As plain values JSON can carry."""
        return {
            "framework": self.framework,
            "name": self.name,
            "distribution": self.distribution,
            "version": self.version,
            "target": self.target,
            "aliases": list(self.aliases),
            "state": self.state.value,
            "reason": self.reason,
            "remark": self.remark,
            "told": self.told,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ComponentRecord:
        """A record for another process: what is settled stays, the rest begins as found."""
        state = State(values["state"])
        settled = state in SETTLED
        record = cls(
            values["framework"],
            values["name"],
            values["distribution"],
            values["version"],
            values["target"],
            state=state if settled else State.FOUND,
            reason=values["reason"] if settled else "",
        )
        record.aliases = tuple(values["aliases"])
        record.remark = values["remark"]
        record.told = values["told"]
        return record
