"""Launch lines of other MPIs as `ompy-run` has them: those of mpirun, prterun and mpiexec.hydra.

An option is taken with its meaning, where there is one here; dropped, where it asks for what is so
anyway or changes no result, and said so if somebody might count on it; or left to `ompy-run`, which
says what it does not know. docs/mpiexec.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ompy.cli.command_line import SEPARATOR, split_programs

Made = list[str]


class Translation(NamedTuple):
    """What became of a launch line.

    Attributes:
        words: for `ompy-run`.
        notes: a sentence for each option that is of no effect.
    """

    words: list[str]
    notes: list[str]


class ForeignOption(NamedTuple):
    """An option of another launcher.

    Attributes:
        values: words it takes.
        made: of these words, what `ompy-run` is told.
        note: what is said when it is of no effect; empty for nothing.
        silent_values: values for which nothing has to be said.
    """

    values: int
    made: Callable[[Sequence[str]], Made]
    note: str = ""
    silent_values: Sequence[str] = ()


def _same(*words: str) -> Callable[[Sequence[str]], Made]:
    return lambda _values: list(words)


def _renamed(option: str) -> Callable[[Sequence[str]], Made]:
    return lambda values: [option, *values]


def _variable(values: Sequence[str]) -> Made:
    return ["-x", f"{values[0]}={values[1]}"]


def _variables(values: Sequence[str]) -> Made:
    return [word for name in values[0].split(",") for word in ("-x", name)]


def _mapping(values: Sequence[str]) -> Made:
    """`core:PE=1:OVERSUBSCRIBE` and the like: an object of a host is a slot of it here."""
    policy, *rest = values[0].split(":")
    if policy == "ppr" and len(rest) > 1:
        policy, rest = ":".join(("ppr", *rest[:2])), rest[2:]
    found = []
    if policy in {"node", "seq"} or policy.startswith("ppr"):
        found += ["--map-by", policy]
    for qualifier in rest:
        if qualifier.upper() in {"OVERSUBSCRIBE", "NOOVERSUBSCRIBE"}:
            found.append(f"--{qualifier.lower()}")
    return found


def _output(values: Sequence[str]) -> Made:
    words = values[0].lower().split(",")
    made = {"tag": "--tag-output", "timestamp": "--timestamp-output", "rank": "--tag-output"}
    return [made[word] for word in words if word in made]


def _display(values: Sequence[str]) -> Made:
    return ["--display-map"] if "map" in values[0].lower() else []


def _parameter(values: Sequence[str]) -> Made:
    """A parameter of a layer that ompy has not: of the launcher, or of waiting."""
    name, value = values
    if "oversubscribe" in name or "oversubscribe" in value.lower():
        return ["--oversubscribe"]
    return [] if name.startswith(LAYERS) or name in WAITING else ["--mca", name, value]


# of Open MPI: its launchers, and the topology they look at
LAYERS: Final = ("orte_", "prte_", "rmaps_", "ras_", "odls_", "ess_", "iof_", "hwloc_", "pmix_")
WAITING: Final = ("mpi_yield_when_idle",)  # ranks yield where they share cores, without being told
IN_TURN: Final = "ranks are numbered as they are mapped"
UNBOUND: Final = "ranks are not bound to cores; the system places them"
_PLM: Final = {"rsh": "ssh", "fork": "local"}

_NOTHING: Final = _same()
OPTIONS: Final[dict[str, ForeignOption]] = {
    "--bind-to": ForeignOption(1, _NOTHING, UNBOUND, ("none",)),
    "--rank-by": ForeignOption(1, _NOTHING, IN_TURN, ("slot", "core", "fill")),
    "--map-by": ForeignOption(1, _mapping),
    "--report-bindings": ForeignOption(0, _same("--display-map"), UNBOUND),
    "--use-hwthread-cpus": ForeignOption(0, _NOTHING),
    "--pernode": ForeignOption(0, _same("--npernode", "1")),
    "--output": ForeignOption(1, _output),
    "--display": ForeignOption(1, _display),
    "--mca": ForeignOption(2, _parameter),
    "--omca": ForeignOption(2, _parameter),
    "--gmca": ForeignOption(2, _parameter),
    "--prtemca": ForeignOption(2, lambda values: _parameter((f"prte_{values[0]}", values[1]))),
    "--pmixmca": ForeignOption(2, _NOTHING),
    "-l": ForeignOption(0, _same("--tag-output")),
    "--prepend-rank": ForeignOption(0, _same("--tag-output")),
    "--genv": ForeignOption(2, _variable),
    "--env": ForeignOption(2, _variable),
    "--genvlist": ForeignOption(1, _variables),
    "--envlist": ForeignOption(1, _variables),
    "--genvall": ForeignOption(0, _NOTHING),
    "--envall": ForeignOption(0, _NOTHING),
    "-f": ForeignOption(1, _renamed("--hostfile")),
    "--hosts": ForeignOption(1, _renamed("--host")),
    "--ppn": ForeignOption(1, _renamed("--npernode")),
    "--perhost": ForeignOption(1, _renamed("--npernode")),
    "--print-rank-map": ForeignOption(0, _same("--display-map")),
    "--launcher": ForeignOption(1, lambda v: ["--mca", "plm", _PLM.get(v[0], v[0])]),
    "--bootstrap": ForeignOption(1, lambda v: ["--mca", "plm", _PLM.get(v[0], v[0])]),
}


def translate_line(words: Sequence[str]) -> Translation:
    """A launch line of another MPI, as `ompy-run` has it."""
    found = Translation([], [])
    for place, part in enumerate(split_programs(words)):
        if place:
            found.words.append(SEPARATOR)
        _translate_part(part, found)
    return found


def _translate_part(part: Sequence[str], found: Translation) -> None:
    from ompy.cli.options import ALIASES, arities

    known, at = arities(), 0
    known |= {alias: known[option] for alias, option in ALIASES.items()}
    while at < len(part) and part[at].startswith("-") and part[at] != "-":
        name, joined, value = part[at].partition("=")
        foreign = OPTIONS.get(name) or (OPTIONS.get(f"-{name}") if len(name) > 2 else None)
        if foreign is None:
            spelled = name if name in known else f"-{name}"
            taken = 0 if joined else known.get(spelled, 0)
            found.words.extend(part[at : at + 1 + taken])
            at += 1 + taken
            continue
        values = [value] if joined else list(part[at + 1 : at + 1 + foreign.values])
        at += 1 + (0 if joined else foreign.values)
        if len(values) < foreign.values:  # ompy-run says what is missing
            found.words.append(name)
            continue
        found.words.extend(foreign.made(values))
        if foreign.note and not (values and values[0].lower() in foreign.silent_values):
            found.notes.append(f"{' '.join([name, *values])} is of no effect: {foreign.note}")
    found.words.extend(part[at:])
