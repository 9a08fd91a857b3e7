"""How a component declares an MCA parameter (Open MPI's MCA variable).

Reference: openmpi.md 1.6.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final, NamedTuple

from ompy.mca.enumerators import BOOLEAN, Enumerator

# least and largest value of each type of whole number, as C has them on a 64-bit machine
INTEGERS: Final[Mapping[str, tuple[int, int]]] = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "unsigned_int": (0, (1 << 32) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "unsigned_long": (0, (1 << 64) - 1),
    "unsigned_long_long": (0, (1 << 64) - 1),
    "size_t": (0, (1 << 63) - 1),  # no memory is larger, and compiled modules hold a signed word
    "int32_t": (-(1 << 31), (1 << 31) - 1),
    "uint32_t": (0, (1 << 32) - 1),
    "int64_t": (-(1 << 63), (1 << 63) - 1),
    "uint64_t": (0, (1 << 64) - 1),
}
TYPES: Final = (
    *INTEGERS,
    "string",
    "version_string",
    "bool",
    "double",
)  # reference openmpi.md 1.6: the names ompi_info prints
LEVELS: Final = {
    1: "user/basic",
    2: "user/detail",
    3: "user/all",
    4: "tuner/basic",
    5: "tuner/detail",
    6: "tuner/all",
    7: "dev/basic",
    8: "dev/detail",
    9: "dev/all",
}  # reference openmpi.md 1.6
BASE: Final = "base"  # reference openmpi.md 1.1: in place of a component, the framework itself
LAYERS: Final = ("mpi_", "opal_")  # reference openmpi.md 1.11: names that belong to no framework
# How environment variables begin that users of other systems know, with the framework whose
# components have them as synonyms. They set a parameter under this very name, and components of
# that framework may have one in common (seed gasnet).
KNOWN_ELSEWHERE: Final[Mapping[str, str]] = {
    "GASNET_": "conduit",
    "GASNETC_": "conduit",
    "PMI_GNI_": "conduit",
}


# Variables of those systems that mean something there and nothing here, without their beginning.
# Source: the sources and launchers of GASNet-1, which ask for these; not all there are.
WITHOUT_MEANING: Final = frozenset(
    f"GASNET_{name}"
    for name in (
        "BACKTRACE",
        "BACKTRACE_NODES",
        "BACKTRACE_TYPE",
        "COLL_ENABLE_SEARCH",
        "COLL_TUNING_FILE",
        "DISABLE_ARGDECODE",
        "DISABLE_ENVDECODE",
        "FREEZE",
        "FREEZE_ON_ERROR",
        "MALLOCFILE",
        "QUIET",
        "SPAWNFN",
        "SSH_CMD",
        "SSH_NODEFILE",
        "SSH_OPTIONS",
        "SSH_SERVERS",
        "STATSNODES",
        "TMPDIR",
        "TRACEFLUSH",
        "TRACELOCAL",
        "TRACENODES",
        "TRACENUMERIC",
        "VERBOSEENV",
    )
)


class Scope(enum.IntEnum):
    """Where and when a value may change (reference openmpi.md 1.6)."""

    CONSTANT = 0
    READONLY = 1
    LOCAL = 2
    GROUP = 3
    GROUP_EQ = 4
    ALL = 5
    ALL_EQ = 6


class Flag(enum.IntFlag):
    """What is special about a parameter; bits of reference openmpi.md 1.6.

    There is no DWG (deregister with the group): variables live as long as their registry.
    """

    NONE = 0
    INTERNAL = 0x01  # shown only with `ompy-info --internal`
    DEFAULT_ONLY = 0x02  # what the user sets is ignored, with a warning
    SETTABLE = 0x04  # may be set while the job runs, until its framework is opened
    DEPRECATED = 0x08  # using it earns a warning
    OVERRIDE = 0x10  # the value comes from the override file; never declared
    ENVIRONMENT_ONLY = 0x20  # ignored in files, with a warning
    DEF_UNSET = 0x80  # shown as `unset` while at its default
    WITHOUT_MEANING = 0x100  # ours: taken from users of Open MPI, does nothing, which is said


class Synonym(NamedTuple):
    """Another name of a parameter; setting either sets it.

    Attributes:
        name: in full, as `btl_vader_eager_limit`: begins with the framework, with one of `LAYERS`
            or as `KNOWN_ELSEWHERE` says.
        flags: `DEPRECATED` and `INTERNAL` mean something here.
    """

    name: str
    flags: Flag = Flag.NONE


def is_known_elsewhere(name: str, framework: str = "") -> bool:
    """Whether a name is one of those of `KNOWN_ELSEWHERE`, of any framework or of this one."""
    return any(
        name.startswith(prefix) and framework in ("", owner)
        for prefix, owner in KNOWN_ELSEWHERE.items()
    )


class Parameter:
    """One parameter of a component or framework.

    Attributes:
        name: without framework and component, as `eager_limit`.
        type: one of `TYPES`.
        default: value when nobody sets it; it is valid, a test asks.
        help: what it does, a sentence for the user.
        level: 1 to 9, who it is for.
        unit: of a number (`bytes`, `us`, `ranks`, ...); empty for words and switches.
        scope: where and when it may change.
        flags: what is special about it.
        synonyms: other names of it.
        choices: of a string, the words allowed, with what each means; None for any.
        minimum: least value of a number, or None for the type's.
        maximum: largest value of a number, or None for the type's.
        enumerator: words for numbers, or None; every bool has one.
        check: raises ValueError for a text that is no value of this string, or None: any is one.
    """

    __slots__ = (
        "check",
        "choices",
        "default",
        "enumerator",
        "flags",
        "help",
        "level",
        "maximum",
        "minimum",
        "name",
        "scope",
        "synonyms",
        "type",
        "unit",
    )

    def __init__(
        self,
        name: str,
        type: str,  # noqa: A002 - the word Open MPI's users know
        default: object,
        help: str,  # noqa: A002
        *,
        level: int,
        unit: str = "",
        scope: Scope = Scope.READONLY,
        flags: Flag = Flag.NONE,
        synonyms: tuple[Synonym, ...] = (),
        choices: Mapping[str, str] | None = None,
        minimum: float | None = None,
        maximum: float | None = None,
        enumerator: Enumerator | None = None,
        check: Callable[[str], object] | None = None,
    ) -> None:
        """Declare it.

        Raises:
            ValueError: the declaration contradicts itself; the text says how.
        """
        self.name = name
        self.type = type
        self.default = default
        self.help = help
        self.level = level
        self.unit = unit
        self.scope = scope
        if scope < Scope.LOCAL or flags & Flag.DEFAULT_ONLY:  # reference openmpi.md 1.6
            flags &= ~Flag.SETTABLE
        self.flags = flags
        self.synonyms = synonyms
        self.choices = choices
        self.minimum = minimum
        self.maximum = maximum
        self.enumerator = BOOLEAN if type == "bool" and enumerator is None else enumerator
        self.check = check
        problem = self._contradiction()
        if problem:
            raise ValueError(f"parameter {name}: {problem}")

    def _contradiction(self) -> str:
        """What is wrong with the declaration, empty if nothing."""
        both = Flag.DEFAULT_ONLY | Flag.ENVIRONMENT_ONLY
        words_fit = self.enumerator is None or self.type in (*INTEGERS, "bool")
        problems = {
            f"there is no type {self.type}; there are {', '.join(TYPES)}": self.type not in TYPES,
            f"there is no level {self.level}; there are 1 to 9": self.level not in LEVELS,
            "it has no help": not self.help,
            "what can only be the default cannot come from the environment": (
                self.flags & both == both
            ),
            f"words for numbers do not fit the type {self.type}": not words_fit,
            f"a choice of words does not fit the type {self.type}": (
                self.choices is not None and self.type != "string"
            ),
            f"a check of texts does not fit the type {self.type}": (
                self.check is not None and self.type != "string"
            ),
        }
        return next((text for text, holds in problems.items() if holds), "")

    def with_synonyms(self, more: tuple[Synonym, ...]) -> Parameter:
        """The same parameter with more names."""
        if not more:
            return self
        made = copy(self)
        made.synonyms = self.synonyms + more
        return made

    def text(self, value: object) -> str:
        """A value of this parameter as the user would write it."""
        if self.enumerator is not None:
            assert isinstance(value, int)
            return self.enumerator.text(int(value))
        return str(value)


class Values:
    """Resolved values of one component's parameters, as attributes.

    `values.eager_limit` is the value of `<framework>_<component>_eager_limit`.
    """

    def __init__(self, values: Mapping[str, object]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no parameter {name} was declared; there are {sorted(self.__dict__)}")
