"""A made-up job: frameworks, components and settings of every kind there can be.

What is shown of it stays the same when ompy gets new components. The components' objects are in
this module, their records name them as entry points do.
"""

from __future__ import annotations

from ompy.mca.component import Component, NotAvailable
from ompy.mca.enumerators import AUTO_BOOLEAN, VERBOSITY_WORDS, Enumerator, FlagEnumerator
from ompy.mca.groups import FrameworkInfo
from ompy.mca.parameter import Flag, Parameter, Scope, Synonym
from ompy.mca.parameters.settings import Origin, Setting
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.registry import Registry

API = (3, 1)
HERE = "tests.support.inventory"


CATALOG = (
    FrameworkInfo(
        "gear",
        "No components.",
        None,
        (
            Parameter("kind", "string", "auto", "Which gear it is.", level=1,
                      choices={"auto": "what fits", "slow": "first gear"}),
            Parameter("teeth", "int", 20, "How many teeth it has.", level=5, unit="teeth",
                      minimum=8, maximum=200),
        ),
    ),
    FrameworkInfo("wire", "Carries bytes.", API),
    FrameworkInfo("match", "Matches.", (2, 0)),
)  # fmt: skip


class Every(Component):
    """One parameter of each type, scope, flag, level and enumerator."""

    framework = "wire"
    name = "every"
    version = "1.2.3"
    api = API
    parameters = (
        Parameter("a_int", "int", -3, "Type int: a number.", level=1, unit="us", minimum=-10),
        Parameter("a_unsigned_int", "unsigned_int", 3, "Type unsigned_int.", level=2, maximum=9),
        Parameter("a_long", "long", 1 << 40, "Type long.", level=3),
        Parameter("a_unsigned_long", "unsigned_long", 4, "Type unsigned_long.", level=4),
        Parameter("a_ulonglong", "unsigned_long_long", 5, "Type unsigned_long_long.", level=5),
        Parameter("a_size_t", "size_t", 4096, "Type size_t.", level=6, unit="bytes"),
        Parameter("a_int32_t", "int32_t", 6, "Type int32_t.", level=7),
        Parameter("a_uint32_t", "uint32_t", 7, "Type uint32_t.", level=8),
        Parameter("a_int64_t", "int64_t", 8, "Type int64_t.", level=9),
        Parameter("a_uint64_t", "uint64_t", 9, "Type uint64_t.", level=9),
        Parameter("a_string", "string", 'say "a:b"', "Type string: quoted.", level=1),
        Parameter("a_version", "version_string", "1.0", "Type version_string.", level=1),
        Parameter("a_bool", "bool", True, "Type bool.", level=1),
        Parameter("a_double", "double", 0.5, "Type double.", level=1, unit="s", minimum=0.0),
        Parameter("constant", "int", 1, "Scope constant.", level=1, scope=Scope.CONSTANT),
        Parameter("local", "int", 1, "Scope local, settable.", level=1, scope=Scope.LOCAL,
                  flags=Flag.SETTABLE),
        Parameter("group", "int", 1, "Scope group, settable.", level=1, scope=Scope.GROUP,
                  flags=Flag.SETTABLE),
        Parameter("group_eq", "int", 1, "Scope group_eq.", level=1, scope=Scope.GROUP_EQ),
        Parameter("all", "int", 1, "Scope all.", level=1, scope=Scope.ALL),
        Parameter("all_eq", "int", 1, "Scope all_eq.", level=1, scope=Scope.ALL_EQ),
        Parameter("inside", "int", 1, "Flag internal.", level=1, flags=Flag.INTERNAL),
        Parameter("told", "string", "x", "Flag default-only.", level=1, flags=Flag.DEFAULT_ONLY),
        Parameter("old", "int", 1, "Flag deprecated.", level=1, flags=Flag.DEPRECATED),
        Parameter("here", "string", "", "Flag environment-only.", level=1,
                  flags=Flag.ENVIRONMENT_ONLY),
        Parameter("undecided", "int", -1, "Flag def-unset.", level=1, flags=Flag.DEF_UNSET),
        Parameter("speed", "int", 1, "With words for numbers.", level=1,
                  enumerator=Enumerator({"slow": 1, "fast": 2})),
        Parameter("talk", "int", 0, "With words for a range.", level=1,
                  enumerator=VERBOSITY_WORDS),
        Parameter("perhaps", "int", -1, "With auto.", level=1, enumerator=AUTO_BOOLEAN),
        Parameter("can", "int", 3, "With flags.", level=1,
                  enumerator=FlagEnumerator({"send": 1, "put": 2, "get": 4}, (("put", "get"),))),
        Parameter("shape", "string", "ring", "With a choice.", level=1,
                  choices={"ring": "round", "tree": "with a root"}),
        Parameter("limit", "size_t", 1024, "With synonyms.", level=1, unit="bytes",
                  synonyms=(Synonym("wire_limit"), Synonym("wire_every_lim", Flag.DEPRECATED),
                            Synonym("wire_every_hidden", Flag.INTERNAL))),
        Parameter("priority", "int", 50, "Rank among others.", level=9),
    )  # fmt: skip


class Small(Component):
    framework = "wire"
    name = "small"
    version = "4"
    api = (3, 0)
    parameters = (Parameter("depth", "int", 7, "How deep it is.", level=4, unit="m"),)


class Reluctant(Component):
    framework = "wire"
    name = "reluctant"
    version = "1.0"
    api = API

    def open(self, values: object) -> None:
        raise NotAvailable("it does not want to")


class Clumsy(Component):
    framework = "wire"
    name = "clumsy"
    version = "1.0"
    api = API

    def open(self, values: object) -> None:
        raise ValueError("it fell over")


class Ancient(Component):
    framework = "wire"
    name = "ancient"
    version = "0.1"
    api = (1, 0)


class Finder(Component):
    framework = "match"
    name = "finder"
    version = "2.0.0"
    api = (2, 0)
    parameters = (Parameter("priority", "int", 5, "Rank among others.", level=9),)


EVERY, SMALL, RELUCTANT, CLUMSY, ANCIENT, FINDER = (
    Every(), Small(), Reluctant(), Clumsy(), Ancient(), Finder()
)  # fmt: skip


def record(
    framework: str, name: str, distribution: str, version: str, attribute: str
) -> ComponentRecord:
    return ComponentRecord(framework, name, distribution, version, f"{HERE}:{attribute}")


def records() -> list[ComponentRecord]:
    """Components of ompy first, then of packages, as discovery sorts them."""
    small = record("wire", "small", "ompy", "0.1", "SMALL")
    small.aliases = ("tiny",)
    return [
        record("wire", "every", "ompy", "0.1", "EVERY"),
        small,
        record("match", "finder", "ompy", "0.1", "FINDER"),
        record("wire", "ancient", "ompy-wire-ancient", "0.1", "ANCIENT"),
        record("wire", "clumsy", "ompy-wire-clumsy", "1.0", "CLUMSY"),
        record("wire", "reluctant", "ompy-wire-reluctant", "1.0", "RELUCTANT"),
        ComponentRecord("wire", "torn", "ompy-wire-torn", "3.0", "tests.support.no_such:TORN"),
        record("wire", "small", "zzz-small", "9.9", "OTHER"),
    ]


SETTINGS = (
    Setting("wire_every_all", "4", Origin("override file", "/etc/ompy-mca-params-override.conf:1")),
    Setting("wire_every_a_int", "0x10", Origin("command line", "--mca wire_every_a_int 0x10")),
    Setting("wire_every_all", "5", Origin("command line", "--mca wire_every_all 5")),
    Setting("wire_every_told", "y", Origin("command line", "--mca wire_every_told y")),
    Setting("wire_every_a_int", "-2", Origin("environment", "OMPY_MCA_wire_every_a_int")),
    Setting("wire_every_can", "send,get", Origin("environment", "OMPY_MCA_wire_every_can")),
    Setting("wire_limit", "2k", Origin("tune file", "/job/fast.conf:7")),
    Setting("wire_every_lim", "3k", Origin("parameter set", "/share/configs/small.conf:2")),
    Setting("wire_every_old", "2", Origin("parameter set", "/share/configs/small.conf:3")),
    Setting("wire_every_here", "x", Origin("file", "/home/me/.ompy/mca-params.conf:4")),
    Setting("wire_every_a_string", "a\tb: c", Origin("file", "/home/me/.ompy/mca-params.conf:5")),
    Setting("wire_every_a_int", "5", Origin("file", "/etc/ompy-mca-params.conf:1")),
)


def settings(selection: str = "") -> list[Setting]:
    """All of them, with a selection of wires on the command line if there is one."""
    chosen = Setting("wire", selection, Origin("command line", f"--mca wire {selection}"))
    return [chosen, *SETTINGS] if selection else list(SETTINGS)


def registry(given: list[Setting]) -> Registry:
    """A registry of it all."""
    return Registry(CATALOG, given, records())
