"""Launch lines of other MPIs as `ompy-run` has them: those of mpirun, prterun and mpiexec.hydra.

An option is taken with its meaning, where there is one here; dropped, where it asks for what is so
anyway or changes no result, and said so if somebody might count on it; or left to `ompy-run`, which
says what it does not know. docs/mpiexec.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ompy.cli.launch.command_line import SEPARATOR, split_programs
from ompy.frameworks.places import FRAMEWORKS
from ompy.mca.enumerators import FALSE, TRUE
from ompy.mca.plugins.parts_elsewhere import component_elsewhere, parameter_elsewhere

Made = list[str]
ANY_NUMBER: Final = "--oversubscribe"


class Translation(NamedTuple):
    """What became of a launch line.

    Attributes:
        words: for `ompy-run`.
        notes: a sentence for each option of which something is of no effect.
    """

    words: list[str]
    notes: list[str]


class ForeignOption(NamedTuple):
    """An option of another launcher.

    Attributes:
        values: words it takes.
        made: of these words, what `ompy-run` is told.
        left_out: of these words, what is of no effect here.
        joined: a first word with `=` is all.
    """

    values: int
    made: Callable[[Sequence[str]], Made]
    left_out: Callable[[Sequence[str]], str] = lambda _values: ""
    joined: bool = False


def _same(*words: str) -> Callable[[Sequence[str]], Made]:
    return lambda _values: list(words)


def _renamed(option: str) -> Callable[[Sequence[str]], Made]:
    return lambda values: [*option.split(), *values]


def _all_of_it(values: Sequence[str]) -> str:
    return values[0]


def _variable(values: Sequence[str]) -> Made:
    return ["-x", "=".join(values)]


def _variables(values: Sequence[str]) -> Made:
    return [word for name in values[0].split(",") for word in ("-x", name)]


def _mapping(values: Sequence[str]) -> Made:
    """`core:PE=2:OVERSUBSCRIBE` and the like, without qualifiers that are of no effect here."""
    policy, rest = _policy_and_qualifiers(values[0])
    kept = [word for word in rest if word.upper().startswith(QUALIFIERS)]
    threads = ["--use-hwthread-cpus"] if "HWTCPUS" in map(str.upper, rest) else []
    if not policy and not kept:
        return threads
    return [*threads, "--map-by", ":".join((policy, *kept))]


def _policy_and_qualifiers(text: str) -> tuple[str, list[str]]:
    policy, *rest = text.split(":")
    if policy.lower() == "rankfile":
        return text, []
    if policy == "ppr" and len(rest) > 1:
        return ":".join(("ppr", *rest[:2])), rest[2:]
    return policy, rest


def _unknown_qualifiers(values: Sequence[str]) -> str:
    known = (*QUALIFIERS, "HWTCPUS")
    _, rest = _policy_and_qualifiers(values[0])
    return ", ".join(word for word in rest if not word.upper().startswith(known))


def _binding(values: Sequence[str]) -> Made:
    """Open MPI's policies are ours; `core:2`, `socket` and `rr` are MPICH's."""
    policy, _, after = values[0].partition(":")
    policy = HYDRA_OBJECTS.get(policy.lower(), policy)
    if after.isdecimal():
        return ["--bind-to", policy, "--cpus-per-rank", after]
    return ["--bind-to", f"{policy}:{after}" if after else policy]


def _ranking(values: Sequence[str]) -> Made:
    """Without `:span`: on one host it changes nothing, and objects of all are not known here."""
    return ["--rank-by", values[0].partition(":")[0]]


def _rank_qualifiers(values: Sequence[str]) -> str:
    return values[0].partition(":")[2]


def _output(values: Sequence[str]) -> Made:
    found = []
    for word in values[0].split(","):
        name, _, value = word.partition("=")
        made = OUTPUT.get(name.lower())
        found += [made, value] if made and value else [made] if made else []
    return found


def _unknown_outputs(values: Sequence[str]) -> str:
    words = values[0].split(",")
    return ", ".join(word for word in words if word.partition("=")[0].lower() not in OUTPUT)


def _display(values: Sequence[str]) -> Made:
    return [DISPLAY[word] for word in values[0].lower().split(",") if word in DISPLAY]


def _unknown_displays(values: Sequence[str]) -> str:
    return ", ".join(word for word in values[0].split(",") if word.lower() not in DISPLAY)


def _recovery(values: Sequence[str]) -> Made:
    """`ulfm`, `mpi` and whatever is not a refusal."""
    refused = values[0].lower() in {"none", "0", *FALSE}
    return ["--mca", "mpi_ft_enable", "0" if refused else "1"]


def _hosts(option: str) -> Callable[[Sequence[str]], Made]:
    """Hosts take as many processes as there are: MPICH's have no limit."""
    return lambda values: [option, *values, ANY_NUMBER]


def _parameter(values: Sequence[str]) -> Made:
    """A parameter of a layer that ompy has not: of the launcher, or of waiting."""
    name, value = values
    text = value.lower()
    if "oversubscribe" in name:
        asked = (text in {"1", *TRUE}) != ("no_oversubscribe" in name)
        return [ANY_NUMBER if asked else "--nooversubscribe"]
    if "oversubscribe" in text:
        return _mapping([value])
    if name == "plm":
        return ["--mca", name, _PLM.get(value, value)]
    if name.endswith("default_hostfile"):
        return ["--hostfile", value]
    layer = name.startswith(LAYERS) and name not in KEPT
    return [] if layer or _is_elsewhere(name, value) else ["--mca", name, value]


def _foreign_parameter(values: Sequence[str]) -> str:
    """What one may count on, of parameters that Open MPI alone has."""
    quiet = (*LAYERS, *WAITING)
    silent = values[0].startswith(quiet) or not _is_elsewhere(*values)
    return "" if silent else " ".join(values)


def _is_elsewhere(name: str, value: str) -> bool:
    """Whether a parameter, or each component that it chooses, is one that Open MPI alone has."""
    components = value.split(",")
    return bool(parameter_elsewhere(name)) or all(
        component_elsewhere(name, part, alone=True) for part in components
    )


# of `--output` (reference openmpi.md 2.4), by ours
OUTPUT: Final = {
    "tag": "--tag-output",
    "tag-detailed": "--tag-output",
    "tag-fullname": "--tag-output",
    "rank": "--tag-output",
    "timestamp": "--timestamp-output",
    "merge": "--merge-stderr",
    "dir": "--output-filename",
}
DISPLAY: Final = {"map": "--display-map", "bind": "--report-bindings"}  # of `--display`, likewise
# of Open MPI: its launchers, and the topology they look at
LAYERS: Final = ("orte_", "prte_", "rmaps_", "ras_", "odls_", "ess_", "iof_", "hwloc_", "pmix_")
WAITING: Final = ("mpi_yield_when_idle",)  # ranks yield where they share cores, without being told
QUALIFIERS: Final = ("OVERSUBSCRIBE", "NOOVERSUBSCRIBE", "SPAN", "PE=")  # reference openmpi.md 2.4
# MPICH's, by ours: its mpiexec's --bind-to -help
HYDRA_OBJECTS: Final = {"rr": "core", "cache3": "l3cache", "cache2": "l2cache", "machine": "none"}
# of these layers, what ompy has under the same name
KEPT: Final = frozenset(
    f"{framework.name}_base_{parameter.name}"
    for framework in FRAMEWORKS
    for parameter in framework.parameters
) | frozenset(
    synonym.name
    for framework in FRAMEWORKS
    for parameter in framework.parameters
    for synonym in parameter.synonyms
)
_PLM: Final = {"rsh": "ssh", "fork": "local"}

_NOTHING: Final = _same()
# what ompy always does, or what only shows more of another launcher
QUIET: Final = (
    *("--noprefix", "--report-state-on-timeout", "--genvall", "--envall", "--hetero-nodes"),
    *("--keep-fqdn-hostnames", "-v", "--verbose", "--show-progress", "--debug-daemons"),
    *("--leave-session-attached", "--print-all-exitcodes", "--enable-x", "--disable-x"),
    "--disable-hostname-propagation",
)
# of mpiexec.hydra: what ompy has nothing for, with a value
UNUSED: Final = (
    *("--usize", "--rmk", "--topolib", "--demux", "--order-nodes", "--localhost", "--pmi-port"),
)
OPTIONS: Final[dict[str, ForeignOption]] = {
    **{name: ForeignOption(0, _NOTHING) for name in QUIET},
    "--bind-to": ForeignOption(1, _binding),
    "--rank-by": ForeignOption(1, _ranking, _rank_qualifiers),
    "--map-by": ForeignOption(1, _mapping, _unknown_qualifiers),
    "--pernode": ForeignOption(0, _same("--npernode", "1")),
    "--npersocket": ForeignOption(1, lambda values: ["--map-by", f"ppr:{values[0]}:socket"]),
    "--bynode": ForeignOption(0, _same("--map-by", "node")),
    "--bycore": ForeignOption(0, _same("--map-by", "core")),
    "--bysocket": ForeignOption(0, _same("--map-by", "package")),
    "--bind-to-none": ForeignOption(0, _same("--bind-to", "none")),
    "--bind-to-core": ForeignOption(0, _same("--bind-to", "core")),
    "--bind-to-socket": ForeignOption(0, _same("--bind-to", "package")),
    "--rr": ForeignOption(0, _same("--map-by", "node")),
    "--byslot": ForeignOption(0, _same("--map-by", "slot")),
    "--with-ft": ForeignOption(1, _recovery),
    "--enable-recovery": ForeignOption(0, _same("--mca", "mpi_ft_enable", "1")),
    "--disable-recovery": ForeignOption(0, _same("--mca", "mpi_ft_enable", "0")),
    "--output": ForeignOption(1, _output, _unknown_outputs),
    "--display": ForeignOption(1, _display, _unknown_displays),
    "--mca": ForeignOption(2, _parameter, _foreign_parameter),
    "--omca": ForeignOption(2, _parameter, _foreign_parameter),
    "--gmca": ForeignOption(2, _parameter, _foreign_parameter),
    "--prtemca": ForeignOption(2, lambda values: _parameter((f"prte_{values[0]}", values[1]))),
    "--pmixmca": ForeignOption(2, _NOTHING),
    "-l": ForeignOption(0, _same("--tag-output")),
    "--prepend-rank": ForeignOption(0, _same("--tag-output")),
    "--genv": ForeignOption(2, _variable, joined=True),
    "--env": ForeignOption(2, _variable, joined=True),
    "--genvlist": ForeignOption(1, _variables),
    "--envlist": ForeignOption(1, _variables),
    "-f": ForeignOption(1, _hosts("--hostfile")),
    "--hosts": ForeignOption(1, _hosts("--host")),
    "--ppn": ForeignOption(1, _renamed("--npernode")),
    "--perhost": ForeignOption(1, _renamed("--npernode")),
    "--print-rank-map": ForeignOption(0, _same("--display-map")),
    "--launcher": ForeignOption(1, lambda v: ["--mca", "plm", _PLM.get(v[0], v[0])]),
    "--bootstrap": ForeignOption(1, lambda v: ["--mca", "plm", _PLM.get(v[0], v[0])]),
    "--launcher-exec": ForeignOption(1, _renamed("--mca plm_rsh_agent")),
    "--bootstrap-exec": ForeignOption(1, _renamed("--mca plm_rsh_agent")),
    "--iface": ForeignOption(1, _renamed("--mca btl_tcp_if_include")),
    "-s": ForeignOption(1, _renamed("--stdin")),
    "--disable-auto-cleanup": ForeignOption(0, _same("--mca", "mpi_ft_enable", "1")),
    **{name: ForeignOption(1, _NOTHING, _all_of_it) for name in UNUSED},
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
        after = [value] if joined else list(part[at + 1 :])
        wanted = 1 if foreign.joined and "=" in "".join(after[:1]) else foreign.values
        values = after[:wanted]
        at += 1 + (0 if joined else wanted)
        if len(values) < wanted:  # ompy-run says what is missing
            found.words.append(name)
            continue
        made = foreign.made(values)
        if made[-1:] == [ANY_NUMBER] and SEPARATOR in found.words:  # it is of the whole job
            found.words.insert(0, made.pop())
        found.words.extend(made)
        if dropped := foreign.left_out(values):
            found.notes.append(_note(" ".join((name, *values)), dropped))
    found.words.extend(part[at:])


def _note(written: str, dropped: str) -> str:
    part = "" if written.endswith(f" {dropped}") else f", {dropped}"
    return f"{'of ' if part else ''}{written}{part} is of no effect"
