"""Writes fault scripts that `--fault` reads again."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ompy.net.faults.fault_rules import NEVER, FaultRule

_DEFAULT: Final = FaultRule("drop")
_TIMES: Final = ("since", "until", "lasts", "delay", "jitter")
_PLAIN: Final = (
    "direction",
    "message",
    "byte",
    "probability",
    "seed",
    "times",
    "mode",
    "bit",
    "above",
)
_LISTS: Final = (("rank", "ranks"), ("peer", "peers"), ("rail", "rails"), ("nth", "nth"))


def toml(rules: Sequence[FaultRule], comment: Sequence[str] = ()) -> str:
    """A script with these rules, those that differ by the packet alone as one.

    Args:
        rules: to be written.
        comment: lines to stand above them.
    """
    parts = ["".join(f"# {line}\n" for line in comment)] if comment else []
    parts += [_table(_written(rule)) for rule in merged(rules)]
    return "\n".join(parts)


def merged(rules: Sequence[FaultRule]) -> list[FaultRule]:
    """Neighbouring rules that differ in `nth` only, as one that has all their packets."""
    found: list[FaultRule] = []
    for rule in rules:
        last = found[-1] if found else None
        if last is not None and last.nth and rule.nth and last._replace(nth=rule.nth) == rule:
            found[-1] = last._replace(nth=tuple(sorted({*last.nth, *rule.nth})))
        else:
            found.append(rule)
    return found


def _written(rule: FaultRule) -> dict[str, Any]:
    """The keys of a rule that are not as they would be without them."""
    keys: dict[str, Any] = {"what": rule.what}
    for key, name in _LISTS:
        values = getattr(rule, name)
        if values:
            keys[key] = list(values) if len(values) > 1 else values[0]
    for name in _TIMES:
        if getattr(rule, name) != getattr(_DEFAULT, name):
            keys["from" if name == "since" else name] = f"{getattr(rule, name)}ns"
    for name in _PLAIN:
        value = getattr(rule, name)
        slow = name == "direction" and rule.what == "slow_receiver"  # which goes without saying
        if value != getattr(_DEFAULT, name) and not slow:
            keys[name] = value
    return keys | _own(rule)


def _own(rule: FaultRule) -> dict[str, Any]:
    """What a kind of fault has of its own, and a default that is not that of a bare rule."""
    match rule.what:
        case "rate_limit" | "slow_receiver":
            return {"rate": f"{rule.rate}bit/s", "buffer": rule.buffer}
        case "black_hole" if rule.gives_up != NEVER:
            return {"gives_up": f"{rule.gives_up}ns"}
        case "reorder":
            return {"delay": f"{rule.delay}ns"}
        case "work_error" | "io_error":
            return {"error": errno.errorcode[rule.error]}
    return {}


def _table(keys: Mapping[str, Any]) -> str:
    lines = []
    for key, value in keys.items():
        if isinstance(value, str):
            shown = f'"{value}"'
        elif isinstance(value, list):
            shown = "[" + ", ".join(f'"{v}"' if isinstance(v, str) else str(v) for v in value) + "]"
        else:
            shown = str(value)
        lines.append(f"{key} = {shown}\n")
    return "[[fault]]\n" + "".join(lines)
