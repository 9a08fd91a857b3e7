#!/usr/bin/env python3
"""What btl/ofi can do over each provider of this machine's libfabric, by doing it.

    python tools/sweep ofi_matrix                         a table
    python tools/sweep ofi_matrix tcp;ofi_rxm shm         of these providers only
    python tools/sweep ofi_matrix --library FILE --keep 2.5.json
                                                       of another libfabric, what was found kept
    python tools/sweep ofi_matrix --read 1.17.json 2.1.json --write docs/ofi-matrix.md
                                                       a table for each library, and the twin's

Two processes per provider run `tests/support/ofi_programs.py`: puts and gets up to 1 MiB,
and every atomic on every type with and without fetching, each result looked at. Three run the
programs of messages (`tests/sim/p2p/programs.py`) and of windows (`tests/sim/osc/programs.py`,
`tests/support/windows_over_btls.py`), which are those of the virtual worlds. A provider that
cannot be used has its reason in the table. Exit code 1 when a provider gives a wrong result.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.support.ofi_programs import features
from tests.support.windows_over_btls import contended, counted
from tests.support.worlds import RankError, real
from tools.repository import commit_name

# reference ofi.md C1, and the twin's own
PROVIDERS: Final = (
    "tcp;ofi_rxm",
    "shm",
    "sockets",
    "udp;ofi_rxd",
    "net",
    "emulated",
    "emulated;offset",
    "emulated;prov_key",
    "emulated;early",
    "emulated;local",
)
TWIN: Final = "emulated"
VERSION: Final = "libfabric"
MADE: Final = "made"
UNUSABLE: Final = "cannot be used"
PROGRAM: Final = f"{features.__module__}:{features.__name__}"
MESSAGES: Final = "tests.sim.p2p.programs:growing"
WINDOWS: Final = f"{counted.__module__}:{counted.__name__}"
AT_ONCE: Final = f"{contended.__module__}:{contended.__name__}"
RANKS: Final = 3  # of messages and windows; arbitrary: two that are at a third at the same time
HEAD: Final = """# What btl/ofi can do, by provider

Written by `python tools/sweep ofi_matrix --read ... --write docs/ofi-matrix.md` from what each
library was kept with (`--library FILE --keep JSON`): what two processes did over each provider on
loopback, three for messages and windows. Providers that begin with `emulated` are those of
`nic/ofi_emulated`, which is no libfabric. From 2.0 on there is no `net`; `tcp` by itself, in its
place, is not offered where atomics are asked for (2.5). An atomic's cell names the types (of INT32,
UINT32, INT64 and UINT64) on which it was done and its results found right, with fetching and
without. Windows: all programs of `tests/sim/osc` and random ones were right; the cell names what of
them was the BTL's, all else being messages.

`sockets` and `udp;ofi_rxd` are off unless `btl_ofi_provider_include` names them: junk that another
user sends hangs the one and crashes the other (nic/libfabric's README, `tools/sweep strangers`).

No test over any of them is an expected failure, not `sockets` either. With
`FI_SOCKETS_PE_WAITTIME=0`, which nic/libfabric sets, and all closed in order, 21 runs of messages,
windows and features by two or three processes ended well on a busy machine. A process that ends
without closing is crashed by each of the four (SIGSEGV); so nic/libfabric closes when the
interpreter ends.

"""


def main() -> None:
    """Run the providers that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("providers", nargs="*", default=PROVIDERS)
    parser.add_argument("--write", type=Path, help="file for the table, instead of the output")
    parser.add_argument("--library", default="", help="libfabric to use instead of the system's")
    parser.add_argument("--keep", type=Path, help="file for what is found, as JSON")
    parser.add_argument("--read", type=Path, nargs="+", help="such files, instead of trying")
    options = parser.parse_args()
    if options.read:
        reports = [json.loads(path.read_text()) for path in options.read]
    else:
        made = f"{datetime.now(UTC):%Y-%m-%d}, ompy at {commit_name()}"
        found = {one: examine(one, options.library) for one in options.providers}
        reports = [{one: {**report, MADE: made} for one, report in found.items()}]
    if options.keep:
        options.keep.write_text(json.dumps(reports[0], indent=1) + "\n")
    text = HEAD + tables(reports)
    found = {provider: report for each in reports for provider, report in each.items()}
    if options.write:
        options.write.write_text(text)
    else:
        print(text, end="")
    wrong = [provider for provider, report in found.items() if "wrong" in report]
    for provider in wrong:
        print(f"FAILED {provider}:\n{found[provider]['wrong']}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def examine(provider: str, library: str) -> dict[str, str]:
    """What one provider can do; `UNUSABLE` with the reason, or `wrong` with what happened."""
    settings = {"btl": "self,ofi", "btl_ofi_provider_include": provider}
    if library:
        settings["nic_libfabric_library"] = library
    if provider.startswith(TWIN):
        settings["btl_ofi_nic"] = "ofi_emulated"
        settings["nic_ofi_emulated_providers"] = provider
    try:
        report: dict[str, str] = real(2, PROGRAM, settings=settings)[0]
        if report["provider"] != provider:  # whose name begins with this one
            return {UNUSABLE: f"`{report['provider']}` is taken for it"}
        real(RANKS, MESSAGES, settings=settings)
        report["messages"] = "yes"
        report["windows"] = ", ".join(_kinds(real(RANKS, WINDOWS, settings=settings)))
        right = real(RANKS, AT_ONCE, settings=settings)[0]
        report["all ranks accumulate at once"] = "yes" if right == 2 * RANKS else "no"
    except RankError as problem:
        said = " ".join(str(problem).split())
        _, refused, why = said.partition("can be used: ")
        return {UNUSABLE: why.partition(" rank ")[0]} if refused else {"wrong": str(problem)}
    return report


def _kinds(begun: Sequence[Mapping[str, int]]) -> list[str]:
    """What was handed to the BTL of puts, gets and atomics, at any rank."""
    kinds = {name.rpartition(" ")[2] for each in begun for name in each}
    return [kind for kind in ("put", "get", "atomic") if kind in kinds]


def tables(reports: Sequence[Mapping[str, dict[str, str]]]) -> str:
    """A table for each libfabric, and one for the emulated twin."""
    parts: list[str] = []
    twin: dict[str, dict[str, str]] = {}
    for found in reports:
        real_ones = {name: one for name, one in found.items() if not name.startswith(TWIN)}
        twin |= {name: one for name, one in found.items() if name.startswith(TWIN)}
        versions = [one[VERSION] for one in real_ones.values() if VERSION in one]
        if real_ones:
            parts += [f"## libfabric {versions[0] if versions else 'missing'}", *_made(real_ones)]
            parts.append(table(real_ones))
    if twin:
        parts += ["## The emulated twin", *_made(twin), table(twin)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _made(found: Mapping[str, Mapping[str, str]]) -> list[str]:
    """When and of which ompy, as far as that was kept."""
    return [
        f"{made}." for made in dict.fromkeys(one.get(MADE, "") for one in found.values()) if made
    ]


def table(found: dict[str, dict[str, str]]) -> str:
    """Features by provider."""
    names = list(dict.fromkeys(name for report in found.values() for name in report))
    names = [name for name in names if name not in ("provider", "wrong", VERSION, MADE)]
    lines = ["| feature | " + " | ".join(f"`{provider}`" for provider in found) + " |"]
    lines.append("|---" * (len(found) + 1) + "|")
    for name in names:
        cells = [report.get(name, "-").replace("|", "/") for report in found.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
