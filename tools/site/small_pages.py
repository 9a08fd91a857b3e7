"""Reference: exit codes and environment variables; both are looked for in the code.

What a name means is said here. A name that the code has and this page has not ends the build, and
so does a name that the code has no more.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path
from typing import Final

from tools.site.markdown import cell, code, table

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = ("core/ompy", "components/ompy_components", "plugins-contrib/pytest-ompy/src")
VARIABLE: Final = re.compile(r"(OMPY|MPIEXEC|MPI4PY)_[A-Z_]+")
SET_BY_USERS: Final = {
    "OMPY_MCA_": "With the name of a parameter behind it: sets the parameter.",
    "OMPY_STRICT_PLUGINS": "The same as `--strict-plugins`: nothing starts if an installed component is broken.",
    "OMPY_PURE": "Runs the interpreted modules, also where there are compiled ones. For `pip install`: compiles nothing.",
    "OMPY_BUILD_ALL": "For `pip install` and `ompy build`: compiles also what needs a library that is missing here.",
    "OMPY_BUILD_CACHE": "For `ompy build`: a folder where compiled modules are kept and found again.",
    "OMPY_SECRET_FILE": "A file with the secret by which hosts prove that they belong to a job that another launcher starts.",
    "OMPY_SINGLETON": "Set to anything: ranks that another launcher starts are separate worlds of one rank.",
    "OMPY_SYSCONFDIR": "Where the parameter file of the system is looked for; else in `etc` of the installation.",
    "MPIEXEC_TIMEOUT": "Seconds after which the job is ended, as `--timeout`.",
    "MPI4PY_RC_": "With the name of an option of `mpi4py.rc` behind it: sets the option.",
    "MPI4PY_PICKLE_": "PROTOCOL or THRESHOLD: as for mpi4py.",
    "MPI4PY_FUTURES_": "MAX_WORKERS, BACKOFF and others: as for mpi4py.",
}
SET_BY_OMPY: Final = {
    "OMPY_RANK": "The rank in COMM_WORLD.",
    "OMPY_SIZE": "The number of ranks in COMM_WORLD.",
    "OMPY_AGENT_FD": "Internal: the descriptor by which a rank talks with its agent.",
    "OMPY_ATTACH_MS": "Internal: how long a rank waits for the first answer of its agent.",
    "OMPY_BEGAN_IN": "Internal: where an agent on another host was started.",
    "OMPY_NOTEBOOK_REGISTRATION": "Internal: the descriptor of ranks that run cells of a notebook.",
    "OMPY_SIM_PREPARED": "Internal: the simulator has started its interpreter anew.",
}
ELSEWHERE: Final = """
Ranks also find `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`, `OMPI_COMM_WORLD_LOCAL_RANK`, `OMPI_COMM_WORLD_LOCAL_SIZE`,
`OMPI_COMM_WORLD_NODE_RANK` and `OMPI_UNIVERSE_SIZE`, as Open MPI sets them. Parameters of the conduits have GASNet's names as well;
the [list of parameters](parameters/conduit.md) has them. In a Slurm allocation the hosts come from `SLURM_JOB_NODELIST`
and `SLURM_TASKS_PER_NODE`. `NO_COLOR` and `TERM=dumb` switch colours off.
"""
# where a code is declared, and what it means
EXIT_CODES: Final = (
    ("ompy.runtime.verdict", "IMPROPER", "ompy-run", "A rank ended without MPI_Init or MPI_Finalize where the others had called it, the launcher failed, or the job could not begin."),
    ("ompy.cli.launching", "NOT_EXECUTABLE", "ompy-run", "The program cannot be executed."),
    ("ompy.cli.launching", "NOT_FOUND", "ompy-run", "There is no such program."),
    ("ompy.runtime.fault_report", "NEVER_FIRED", "ompy-run, ompy sim", "With `--fault-strict`: a fault never struck."),
    ("ompy.runtime.autopsy", "DEADLOCK", "ompy-run, ompy sim", "A deadlock: ranks can never go on."),
    ("ompy.check.findings", "EXIT", "ompy-run", "With `--check`: there are findings."),
    ("ompy.runtime.simulation.simulated_world", "BEYOND", "ompy sim", "The world had no end within `--limit`, or a rank computed longer than `--patience`."),
    ("ompy.runtime.verdict", "TIMED_OUT", "ompy-run", "The job took longer than `--timeout`."),
    ("ompy.runtime.verdict", "BY_SIGNAL", "ompy-run, ompy sim", "And the number of a signal added: a rank was killed by it; 130 is Ctrl-C."),
    ("ompy.outputs", "READER_GONE", "all commands", "Nobody reads standard output any more (`| head`)."),
    ("ompy.cli.info.session", "NOT_FOUND", "ompy-info", "Something that was named does not exist."),
    ("ompy.cli.conformance", "DOES_NOT_CONFORM", "ompy conformance", "The component does not keep its contract."),
    ("ompy.cli.sim_sweep", "FAILED", "ompy sim --seeds", "At least one world failed."),
)  # fmt: skip


def pages() -> dict[str, str]:
    """Both pages."""
    return {"exit-codes.md": exit_codes(), "environment.md": environment()}


def exit_codes() -> str:
    """Codes, with the number the code has today."""
    import importlib

    rows = []
    for module, name, command, meaning in EXIT_CODES:
        number = getattr(importlib.import_module(module), name)
        rows.append((number, [str(number), cell(command), cell(meaning), code(f"{module}.{name}")]))
    rows.sort(key=lambda row: row[0])
    head = (
        "# Exit codes\n\nA job that ends well has the code 0. When a rank fails, its own code is that of the job: "
        "the first failure decides. These are the codes that ompy adds. 2 is for a wrong command line "
        "or a wrong setting, in every command.\n\n"
    )
    columns = ["code", "command", "meaning", "declared as"]
    return head + table(columns, (row for _, row in rows))


def environment() -> str:
    """Variables, with the modules that name them."""
    found = variables()
    known = {**SET_BY_USERS, **SET_BY_OMPY}
    unknown, gone = sorted(found.keys() - known), sorted(known.keys() - found)
    if unknown or gone:
        raise ValueError(f"tools/site/small_pages.py: to be described: {unknown}; to go: {gone}")
    parts = ["# Environment variables\n"]
    for title, group in (("You set", SET_BY_USERS), ("ompy sets", SET_BY_OMPY)):
        rows = ([code(name), cell(about), _homes(found[name])] for name, about in group.items())
        parts += [f"## {title}\n", table(["variable", "what it does", "read or set in"], rows)]
    return "\n".join(parts) + ELSEWHERE


def _homes(paths: list[str]) -> str:
    more = f" and {len(paths) - 2} more" if len(paths) > 2 else ""
    return ", ".join(map(code, paths[:2])) + more


def variables() -> dict[str, list[str]]:
    """Every name in a string of the code that looks like a variable of ours, and where."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            text = path.read_text()
            if not VARIABLE.search(text):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    named = VARIABLE.match(node.value)
                    whole = named and re.fullmatch(r"[A-Z0-9_]+", node.value.partition("=")[0])
                    home = str(path.relative_to(ROOT))
                    if named and whole and home not in found[named[0]]:
                        found[named[0]].append(home)
    return {name: homes for name, homes in found.items() if homes}
