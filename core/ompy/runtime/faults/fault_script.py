"""Fault scripts as users write them: TOML files and one-line SPECs, checked and resolved to rules.

For the launcher and the tools: it imports pydantic. The language is told in `docs/faults.md`.
"""

from __future__ import annotations

import errno
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ompy.mca.errors import UsageError, did_you_mean
from ompy.mca.parameters.parameter_files import parameter_set_directory
from ompy.net.faults.fault_rules import (
    FAULTS,
    LASTING_FAULTS,
    NEVER,
    PACING_FAULTS,
    PACKET_FAULTS,
    RETRYING_RAILS,
    SEEN_FAULTS,
    STORAGE_FAULTS,
    WORK_FAULTS,
    FaultRule,
)
from ompy.runtime.faults.quantities import LARGEST, RATES, TIMES, quantity

TABLE: Final = "fault"  # `[[fault]]` begins each rule of a file
SUFFIX: Final = ".toml"
FOLDER: Final = "faults"  # of configs/, where names without a path are looked for
GIVES_UP: Final = "924.6s"  # Linux: what tcp_retries2 = 15 comes to
REORDERED: Final = "1ms"  # arbitrary: many round trips of a fast network, below any timeout
BUFFER: Final = 262_144  # bytes; arbitrary: what a small switch keeps for a port
FILE_MAX: Final = 1 << 20  # bytes; arbitrary: some thousand faults
SHOWN_MAX: Final = 80  # characters of what is wrong; arbitrary: a line of a terminal
NO_WIRE: Final = {"sm", "self"}  # rails people may name that are none

_WHERE: Final = {"what", "rank", "rail", "from", "until"}
_FLOW: Final = _WHERE | {"peer", "direction"}
_STORED: Final = _WHERE - {"rail"} | {"nth", "probability", "seed", "times"}
_WHICH: Final = {"nth", "message", "byte"}
_CHANCE: Final = _FLOW | _WHICH | {"probability", "seed", "times", "above"}
KEYS: Final[Mapping[str, set[str]]] = {
    "drop": _CHANCE,
    "duplicate": _CHANCE,
    "reorder": _CHANCE | {"delay", "jitter"},
    "delay": _CHANCE | {"delay", "jitter"},
    "corrupt": _CHANCE | {"mode", "bit"},
    "rate_limit": _FLOW | {"rate", "buffer"},
    "slow_receiver": _FLOW - {"direction"} | {"rate", "buffer"},
    "black_hole": _FLOW | _WHICH | {"lasts", "gives_up", "above"},
    "link_down": _WHERE | _WHICH | {"lasts"},
    "nic_gone": _WHERE | _WHICH,
    "work_error": _WHERE | {"peer", "nth", "probability", "seed", "times", "error"},
    "io_error": _STORED | {"error"},
    "short_write": _STORED,
    "enospc": _STORED,
}
assert set(KEYS) == set(FAULTS)


def _several(value: Any) -> Any:
    """A single value as a list of one; `0+2` of a SPEC as a list of two."""
    if isinstance(value, str):
        return value.split("+")
    return value if isinstance(value, list) else [value]


def _word(value: Any) -> Any:
    return re.sub(r"[-\s]+", "_", value.strip()) if isinstance(value, str) else value


def _errno(value: Any) -> int:
    """The number of an error that is named as the kernel does, `EIO`.

    Raises:
        ValueError: there is no such error.
    """
    numbers = {name: number for number, name in errno.errorcode.items()}
    if str(value) not in numbers:
        near = did_you_mean(str(value), list(numbers))
        raise ValueError(f"an error is needed as the kernel names it, as EIO{near}")
    return numbers[str(value)]


Duration = Annotated[int, BeforeValidator(lambda v: quantity(v, TIMES, "10ms"))]
Errno = Annotated[int, BeforeValidator(_errno)]
Rate = Annotated[int, BeforeValidator(lambda v: quantity(v, RATES, "10Mbit/s")), Field(gt=0)]
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Amount = Annotated[int, Field(ge=0, le=LARGEST)]
Ranks = Annotated[list[Amount], BeforeValidator(_several)]
Counts = Annotated[list[Count], BeforeValidator(_several)]
Rails = Annotated[list[str], BeforeValidator(_several)]


class Entry(BaseModel):
    """One `[[fault]]` as it is written; what each kind may have besides is in `KEYS`."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    what: Annotated[Literal[FAULTS], BeforeValidator(_word)]  # type: ignore[valid-type]
    rank: Ranks = []
    peer: Ranks = []
    rail: Rails = []
    direction: Literal["out", "in", "both"] | None = None
    since: Duration = Field(0, alias="from")
    until: Duration | None = None
    lasts: Duration | None = None
    nth: Counts = []
    message: Count | None = None
    byte: Count | None = None
    probability: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=-LARGEST, le=LARGEST)] = 0
    times: Count | None = None
    delay: Duration | None = None
    jitter: Duration = 0
    rate: Rate | None = None
    buffer: Amount = BUFFER
    mode: Literal["bit", "byte", "forged"] = "bit"
    bit: Amount | None = None
    above: Amount = 0
    gives_up: Duration = Field(quantity(GIVES_UP, TIMES, ""))
    error: Errno = errno.EIO


def _check_together(entry: Entry, given: set[str]) -> str:
    """What is wrong with the keys of an entry as a whole; empty when nothing is."""
    what = entry.what
    foreign = given - KEYS[what]
    if foreign:
        name = min(foreign)
        return f"{what} has no key {name}; it has {', '.join(sorted(KEYS[what] - {'what'}))}"
    triggered = bool(entry.nth or entry.message)
    always = "probability" in given or triggered or what == "delay"
    timed = entry.until is not None or entry.since
    rules = (
        (
            what in PACKET_FAULTS and not always,
            f"{what} strikes single packets: say which, by probability, nth or message",
        ),
        (
            what in WORK_FAULTS and not always,
            f"{what} strikes single pieces of work: say which, by probability or nth",
        ),
        (
            what in STORAGE_FAULTS and not always,
            f"{what} strikes single calls to files: say which, by probability or nth",
        ),
        (what == "delay" and not (entry.delay or entry.jitter), "delay needs a delay or a jitter"),
        (what in PACING_FAULTS and entry.rate is None, f"{what} needs a rate, as 10Mbit/s"),
        (what == "slow_receiver" and not entry.rank, "slow_receiver needs a rank: who is slow"),
        (bool(entry.nth) and entry.message is not None, "nth and message exclude each other"),
        (entry.byte is not None and entry.message is None, "byte needs a message it belongs to"),
        (entry.lasts is not None and not triggered, "lasts belongs to nth or message; use until"),
        (
            what in LASTING_FAULTS and triggered and bool(timed),
            f"{what} begins with a packet (nth, message) or at a time (from), not both",
        ),
        (
            what == "black_hole" and triggered and entry.direction in {"in", "both"},
            "nth and message are counted by the sender: direction must be out, or use from",
        ),
        (entry.until is not None and entry.until <= entry.since, "until is not after from"),
        (
            bool(NO_WIRE & set(entry.rail)),
            "sm and self move bytes in memory, where there is no wire for a fault to strike: "
            "run with --mca btl self,tcp or self,usnic and name an interface, or no rail",
        ),
    )
    return next((text for wrong, text in rules if wrong), _hidden(entry))


def _hidden(entry: Entry) -> str:
    """Why a fault would not be seen on the rails it names; empty where it is."""
    if not set(RETRYING_RAILS) & set(entry.rail) or entry.what in SEEN_FAULTS:
        return ""
    return (
        f"the links of a Gemini or Aries find errors and send again by themselves, so there is no "
        f"{entry.what} to be seen on {' or '.join(entry.rail)}; there are {', '.join(SEEN_FAULTS)}"
    )


def _rule(entry: Entry, origin: str, text: str) -> FaultRule:
    slow = entry.what == "slow_receiver"
    reordered = entry.what == "reorder" and entry.delay is None
    return FaultRule(
        what=entry.what,
        ranks=tuple(entry.rank),
        peers=tuple(entry.peer),
        rails=tuple(entry.rail),
        direction="in" if slow else entry.direction or "out",
        since=entry.since,
        until=NEVER if entry.until is None else entry.until,
        lasts=NEVER if entry.lasts is None else entry.lasts,
        nth=tuple(entry.nth),
        message=entry.message or 0,
        byte=entry.byte or 1,
        probability=1.0 if entry.probability is None else entry.probability,
        seed=entry.seed,
        times=entry.times or 0,
        delay=quantity(REORDERED, TIMES, "") if reordered else entry.delay or 0,
        jitter=entry.jitter,
        rate=entry.rate or 0,
        buffer=entry.buffer,
        mode=entry.mode,
        bit=NEVER if entry.bit is None else entry.bit,
        above=entry.above,
        gives_up=entry.gives_up,
        error=_error_of(entry),
        origin=origin,
        text=text,
    )


def _error_of(entry: Entry) -> int:
    """The number of the error that what is struck ends with; 0 where there is none."""
    if entry.what == "enospc":
        return errno.ENOSPC
    return entry.error if entry.what in {*WORK_FAULTS, "io_error"} else 0


def _parse(values: Mapping[str, Any], origins: Mapping[str, str], place: str) -> FaultRule:
    """One rule.

    Args:
        values: as written.
        origins: where single keys stand, as far as known.
        place: where the whole stands.

    Raises:
        UsageError: it is wrong.
    """
    try:
        entry = Entry.model_validate(dict(values))
    except ValidationError as problem:
        raise UsageError(*(_told(error, origins, place) for error in problem.errors())) from None
    wrong = _check_together(entry, set(values))
    if wrong:
        raise UsageError(f"{place}: {wrong}")
    return _rule(entry, place, spec_of(values))


def _told(error: Any, origins: Mapping[str, str], place: str) -> str:
    """A problem pydantic has found, in our words."""
    if not error["loc"]:  # a key that is no text
        return f"{place}: a key is no text that could be shown"
    key = str(error["loc"][0])
    where = origins.get(key, place)
    value = error["input"]
    match error["type"]:
        case "extra_forbidden":
            known = sorted(set().union(*KEYS.values()))
            return f"{where}: there is no key {key}{did_you_mean(key, known)}"
        case "missing":
            return f"{where}: {key} is missing; it is one of {', '.join(FAULTS)}"
        case "literal_error" if key == "what":
            near = did_you_mean(str(value), FAULTS)
            return f"{where}: there is no fault {value}{near or '; there are ' + ', '.join(FAULTS)}"
        case "literal_error":
            return f"{where}: {key} is {value!r}; it must be {error['ctx']['expected']}"
    text = error["msg"].removeprefix("Value error, ")
    return f"{where}: {key} = {_short(repr(value))}: {text[:1].lower()}{text[1:]}"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def spec_of(values: Mapping[str, Any]) -> str:
    """A rule in one line, as `--fault` takes it."""
    rest = []
    for key, value in values.items():
        if key != "what":
            several = isinstance(value, list)
            rest.append(f"{key}={'+'.join(map(str, value)) if several else value}")
    what = str(_word(values.get("what", "")))
    return f"{what}:{','.join(rest)}" if rest else what


def parse_spec(text: str) -> list[FaultRule]:
    """The rules of a one-line SPEC: `what:key=value,key=value`, several separated by `;`.

    Raises:
        UsageError: it is wrong; the text names the part and what is near.
    """
    rules = []
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        place = f"--fault {part}"
        what, _, rest = part.partition(":")
        values: dict[str, Any] = {"what": what}
        for pair in filter(None, rest.split(",")):
            key, equals, value = pair.partition("=")
            if not equals:
                raise UsageError(f"{place}: {pair} is no key=value; as drop:probability=0.1,rank=0")
            values[key.strip()] = value.strip()
        rules.append(_parse(values, {}, place))
    if not rules:
        raise UsageError("--fault: the SPEC is empty; as drop:probability=0.1,rank=0")
    return rules


def read_file(path: Path) -> list[FaultRule]:
    """The rules of a TOML file.

    Raises:
        UsageError: it cannot be read or is wrong; every problem with file and line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(FILE_MAX + 1)
        if len(content) > FILE_MAX:
            raise UsageError(f"--fault {path}: it has more than {FILE_MAX >> 20} MiB")
        text = content.decode()
        document = tomllib.loads(text)
    except OSError as problem:
        raise UsageError(f"--fault {path}: {problem.strerror}") from None
    except RecursionError:
        raise UsageError(f"{path}: this is no fault script: it is nested too deep") from None
    except ValueError as problem:  # of tomllib, of the text's form, of a number in it
        raise UsageError(f"{path}: this is no TOML: {problem}") from None
    problems = [
        f"{path}: there is no key {key}{did_you_mean(key, [TABLE])}; each fault is a [[{TABLE}]]"
        for key in document
        if key != TABLE
    ]
    tables = document.get(TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: each fault begins with [[{TABLE}]]")
    if not tables and not problems:
        problems.append(f"{path}: there is no [[{TABLE}]] in it")
    lines = _lines(text)
    rules = []
    for number, table in enumerate(tables):
        begun, keys = lines[number] if number < len(lines) else (0, {})
        origins = {key: f"{path}:{line}" for key, line in keys.items()}
        try:
            rules.append(_parse(table, origins, f"{path}:{begun}"))
        except UsageError as problem:
            problems += problem.problems
    if problems:
        raise UsageError(*problems)
    return rules


def _lines(text: str) -> list[tuple[int, dict[str, int]]]:
    """Where each `[[fault]]` stands, and each of its keys; the TOML parser does not tell."""
    found: list[tuple[int, dict[str, int]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*\[\[\s*{TABLE}\s*\]\]", line):
            found.append((number, {}))
        elif found and (key := re.match(r"\s*([\w-]+)\s*=", line)):
            found[-1][1].setdefault(key[1], number)
    return found


def read_faults(texts: Sequence[str], ranks: int) -> list[FaultRule]:
    """The rules of all `--fault` options: SPECs, files, and names of files in `configs/faults`.

    Args:
        texts: what was given.
        ranks: of the job.

    Raises:
        UsageError: something is wrong.
    """
    rules: list[FaultRule] = []
    for text in texts:
        path = _path(text)
        rules += parse_spec(text) if path is None else read_file(path)
    problems = [
        f"{rule.origin}: rank {rank} in a job of {ranks}: the last is {ranks - 1}"
        for rule in rules
        for rank in (*rule.ranks, *rule.peers)
        if rank >= ranks
    ]
    if problems:
        raise UsageError(*problems)
    return rules


def _path(text: str) -> Path | None:
    """The file that is meant, or None for a SPEC."""
    if text.endswith(SUFFIX) or ("/" in text and ":" not in text):
        return Path(text)
    if re.fullmatch(r"[\w-]+", text) and str(_word(text)) not in FAULTS:
        # looked up among what there is: the system would refuse to look for a name that is too long
        shipped = (Path(parameter_set_directory()) / FOLDER).glob(f"*{SUFFIX}")
        named = {path.stem: path for path in shipped if path.is_file()}
        if text in named:
            return named[text]
        near = did_you_mean(text, [*named, *FAULTS])
        raise UsageError(
            f"--fault {text}: there is no fault and no script of this name{near}; a file ends in "
            f"{SUFFIX}, a SPEC is as drop:probability=0.1"
        )
    return None
