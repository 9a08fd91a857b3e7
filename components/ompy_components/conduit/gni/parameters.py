"""What the user may set of the conduits `gemini` and `aries`.

Every environment variable of the seed is a parameter here, and its own name a synonym of it, which
both conduits have. Compile-time settings of the original are parameters too. The two have one list;
`DIFFERENCES` is where they differ.

Source: seed gasnet (Recognized environment variables, Optional compile-time
settings); reference gasnet.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ompy.frameworks.nic.gni import Ordering
from ompy.mca.parameter import Flag, Parameter, Scope, Synonym, Values

KIBI: Final = 1024  # seed gasnet: what it writes K for
FMA_MAX: Final = 16 * KIBI  # seed gasnet: most of the cutovers from FMA to RDMA
BOUNCE_MAX: Final = 32 * KIBI  # seed gasnet: most of those from bounce buffers to registration
OLD_PREFIX: Final = "GASNETC_"  # reference gasnet.md 7: of the names before March 2013

EVERYTHING: Final = "everything"
# what a line of a trace or of statistics can be about, as GASNet-1 has it (recording.py)
LETTERS: Final = "GPSWXBLAICDNH"

DIFFERENCES: Final[Mapping[str, Mapping[str, object]]] = {
    "gemini": {"priority": 10},  # arbitrary: below aries, which is the newer one
    "aries": {"priority": 20},  # arbitrary: what is taken where nobody says which
}


def parameters(conduit: str) -> tuple[Parameter, ...]:
    """All parameters of one of the two conduits, of that name."""
    different = DIFFERENCES[conduit]
    transfers = (*_posts(), *_transfers(), *_bursts())
    life = (*_modes(), *_segments(), *_exits(), *_recordings(), *_provided())
    found = (*_selection(), *_messages(), *transfers, *life)
    for parameter in found:
        parameter.default = different.get(parameter.name, parameter.default)
    return found


def ordering(values: Values) -> Ordering:
    """How memory is registered: `GASNET_GNI_MEM_CONSISTENCY` as the NIC has it."""
    return Ordering(values.mem_consistency)


def bounce_buffer(values: Values) -> int:
    """Bytes of one bounce buffer: the larger of the two cutovers."""
    return int(max(values.get_bounce_register_cutover, values.put_bounce_register_cutover))


def contradiction(values: Values) -> str:
    """What of the values, each of them valid, does not go together; empty if all does."""
    buffer = bounce_buffer(values)
    if values.bounce_size < buffer:
        return (
            f"bounce_size is {values.bounce_size} bytes, which is not one bounce buffer of {buffer}"
            " bytes (the larger of get_bounce_register_cutover and put_bounce_register_cutover)"
        )
    if values.exittimeout_min > values.exittimeout_max:
        return (
            f"exittimeout_min is {values.exittimeout_min} s, which is more than exittimeout_max, "
            f"{values.exittimeout_max} s"
        )
    return ""


def check_mask(mask: str) -> None:
    """See that each letter of a mask means something.

    Raises:
        ValueError: one does not.
    """
    wrong = "".join(sorted(set(mask) - set(LETTERS)))
    if wrong:
        raise ValueError(f"{wrong} is none of {LETTERS}")


def check_segment_mode(mode: str) -> None:
    """See that it is a mode these conduits have.

    Raises:
        ValueError: it is the one that they lack.
    """
    if mode == EVERYTHING:
        raise ValueError(
            "these conduits never had it: put and get want a segment, fast or large (a buffer of "
            "Python has no address that others could name)"
        )


def _names(*variables: str) -> tuple[Synonym, ...]:
    """Environment variables that set a parameter, and those that once did."""
    old = [f"{OLD_PREFIX}{name[7:]}" for name in variables if name.startswith("GASNET_GNI_")]
    return (
        *(Synonym(name) for name in variables),
        *(Synonym(name, Flag.DEPRECATED) for name in old),
    )


def _selection() -> tuple[Parameter, ...]:
    return (
        Parameter(
            "priority",
            "int",
            0,
            "Preference over other conduits; the highest that can be used is taken.",
            level=9,
            unit="priority",
            minimum=0,
            maximum=100,
        ),
        Parameter(
            "messages",
            "string",
            "smsg",
            "How active messages travel.",
            level=5,
            choices={
                "smsg": "short messages of the NIC, as the seed tells it (1.20.0)",
                "mailboxes": "puts into mailboxes of the conduit's own (1.20.2)",
            },
        ),
        Parameter(
            "pshm",
            "bool",
            True,
            "Whether ranks of one host reach each other through shared memory, past the NIC.",
            level=4,
        ),
        Parameter(
            "pshm_network_depth",
            "int",
            32,  # reference gasnet.md 7
            "Requests a rank may have under way to each other rank of its host.",
            level=5,
            unit="messages",
            synonyms=_names("GASNET_PSHM_NETWORK_DEPTH"),
            minimum=1,
            maximum=1024,  # arbitrary: a ring of a megabyte for each pair
        ),
    )


def _messages() -> tuple[Parameter, ...]:
    return (
        Parameter(
            "networkdepth",
            "int",
            12,  # seed gasnet
            "Active message requests that may be under way to each peer: its buffers for them.",
            level=4,
            unit="messages",
            synonyms=_names("GASNET_NETWORKDEPTH"),
            minimum=1,  # seed gasnet
            maximum=4096,  # arbitrary: 5 MiB of mailboxes for each peer
        ),
        Parameter(
            "message_events",
            "int",
            0,
            "Room for events of arriving short messages; 0: two for each message that may come. "
            "When there is none left events are lost, and all peers are looked at.",
            level=7,
            unit="events",
            minimum=0,
        ),
        Parameter(
            "use_spinlock",
            "bool",
            False,  # seed gasnet: GASNETC_USE_SPINLOCK
            "Whether threads wait for the NIC's lock by trying again and again.",
            level=7,
            synonyms=(Synonym("GASNETC_USE_SPINLOCK"),),
        ),
    )


def _transfers() -> tuple[Parameter, ...]:
    return (
        *(_cutover(way) for way in ("get", "put")),
        *(_bounce_cutover(way) for way in ("get", "put")),
        Parameter(
            "bounce_size",
            "size_t",
            256 * KIBI,  # seed gasnet
            "Memory for bounce buffers, each as large as the larger of the two cutovers.",
            level=4,
            unit="bytes",
            synonyms=_names("GASNET_GNI_BOUNCE_SIZE"),
            maximum=1 << 30,  # arbitrary: a gibibyte a rank
        ),
        Parameter(
            "mem_consistency",
            "string",
            "relaxed",  # seed gasnet
            "In which order what is put into a segment can be seen there.",
            level=4,
            synonyms=_names("GASNET_GNI_MEM_CONSISTENCY"),
            choices={
                "strict": "in the order in which it was put",
                "relaxed": "in any order, also the parts of one put",
                "default": "one put whole, but several in any order",
            },
        ),
        Parameter(
            "memreg",
            "int",
            16,  # seed gasnet
            "Temporary registrations of memory outside the segment at a time; 0: as many as the "
            "NIC gives.",
            level=4,
            unit="registrations",
            synonyms=_names("GASNET_GNI_MEMREG"),
            minimum=0,
        ),
    )


def _posts() -> tuple[Parameter, ...]:
    return (
        Parameter(
            "num_pd",
            "int",
            512,  # seed gasnet
            "Post descriptors: messages and transfers of a rank that may be under way at a time.",
            level=4,
            unit="descriptors",
            synonyms=_names("GASNET_GNI_NUM_PD"),
            minimum=1,  # the seed names no least number, and one is enough
            maximum=65_536,  # arbitrary: more than the 65,535 handles of a thread
        ),
        Parameter(
            "retry_patience",
            "double",
            300.0,  # arbitrary: a peer that computes for minutes may keep the NIC's rings full
            "How long the NIC may refuse one post or registration before that is an error; it has "
            "to refuse 1000 times, too.",
            level=6,
            unit="s",
            minimum=0,
        ),
    )


def _bursts() -> tuple[Parameter, ...]:
    return (
        Parameter(
            "smsg_burst",
            "int",
            20,  # seed gasnet: SMSG_BURST
            "Events of arriving short messages that are taken at once.",
            level=7,
            unit="events",
            minimum=1,
        ),
        Parameter(
            "smsg_peer_burst",
            "int",
            4,  # reference gasnet.md 5.3: SMSG_PEER_BURST
            "Peers whose messages are looked after in one poll.",
            level=7,
            unit="peers",
            minimum=1,
        ),
        Parameter(
            "poll_burst",
            "int",
            10,  # seed gasnet: gasnetc_poll_burst
            "Completions of transfers that are taken at once.",
            level=7,
            unit="events",
            minimum=1,
        ),
    )


def _cutover(way: str) -> Parameter:
    return Parameter(
        f"{way}_fma_rdma_cutover",
        "size_t",
        4 * KIBI,  # seed gasnet
        f"Largest {way} that the processor does (FMA); larger ones the NIC's engine does (BTE).",
        level=4,
        unit="bytes",
        synonyms=_names(f"GASNET_GNI_{way.upper()}_FMA_RDMA_CUTOVER"),
        maximum=FMA_MAX,
    )


def _bounce_cutover(way: str) -> Parameter:
    return Parameter(
        f"{way}_bounce_register_cutover",
        "size_t",
        8 * KIBI,  # seed gasnet
        f"Largest {way} outside the segment that goes by a bounce buffer; for larger ones the "
        "memory is registered.",
        level=4,
        unit="bytes",
        synonyms=_names(f"GASNET_GNI_{way.upper()}_BOUNCE_REGISTER_CUTOVER"),
        maximum=BOUNCE_MAX,
    )


def _segments() -> tuple[Parameter, ...]:
    return (
        Parameter(
            "physmem_pinnable_ratio",
            "double",
            0.80,  # seed gasnet
            "Share of a host's memory that the segments of its ranks may take together.",
            level=4,
            unit="ratio",
            # the seed says DEFAULT and misspells it; the original's code reads the other name
            synonyms=_names(
                "GASNET_DEFAULT_PHYSMEM_PINNBLE_RATIO", "GASNET_PHYSMEM_PINNABLE_RATIO"
            ),
            minimum=0.001,  # arbitrary: with nothing at all there is no segment
        ),
        Parameter(
            "physmem_max",
            "size_t",
            0,
            "Memory of a host that counts for segments; 0: what the host has.",
            level=4,
            unit="bytes",
            synonyms=_names("GASNET_PHYSMEM_MAX"),
        ),
        Parameter(
            "physmem_noprobe",
            "bool",
            False,  # seed gasnet
            "Whether to believe the computed size of the segment, and not try to map it.",
            level=5,
            synonyms=_names("GASNET_PHYSMEM_NOPROBE"),
        ),
        Parameter(
            "max_segsize",
            "size_t",
            0,
            "Largest segment of a rank; 0: what the host's memory allows.",
            level=4,
            unit="bytes",
            synonyms=_names("GASNET_MAX_SEGSIZE"),
        ),
    )


def _modes() -> tuple[Parameter, ...]:
    return (
        Parameter(
            "segment_mode",
            "string",
            "fast",
            "What a segment is, which GASNet-1 decides when it is built.",
            level=5,
            choices={
                "fast": "all of it is registered at once",
                "large": "as fast: these conduits register all of it at once",
                EVERYTHING: "all memory; refused, as these conduits never had it",
            },
            check=check_segment_mode,
        ),
    )


def _exits() -> tuple[Parameter, ...]:
    def timeout(name: str, default: float, help_: str, unit: str = "s") -> Parameter:
        variable = f"GASNET_{name.upper()}"
        synonyms = _names(variable)
        return Parameter(
            name, "double", default, help_, level=5, unit=unit, synonyms=synonyms, minimum=0
        )

    return (  # reference gasnet.md 7: 120, 3 and 0.125
        timeout("exittimeout", 0.0, "How long ranks wait for each other at exit; 0: computed."),
        timeout("exittimeout_max", 120.0, "Longest such time that is computed."),
        timeout("exittimeout_min", 3.0, "What is computed begins with this."),
        timeout("exittimeout_factor", 0.125, "What each rank adds to it.", "s/rank"),
    )


def _recordings() -> tuple[Parameter, ...]:
    """Files of text, beside the trace of `ompy trace`."""

    def file(name: str, what: str) -> Parameter:
        return Parameter(
            name,
            "string",
            "",
            f"File for {what}; % is the rank, also stdout, stderr, - (stderr). Empty: none.",
            level=4,
            synonyms=_names(f"GASNET_{name.upper()}"),
        )

    def mask(name: str, what: str) -> Parameter:
        return Parameter(
            name,
            "string",
            LETTERS,
            f"What is in {what}: G gets, P puts, A messages, I the rank, C the conduit, D details.",
            level=5,
            synonyms=_names(f"GASNET_{name.upper()}"),
            check=check_mask,
        )

    return (
        file("tracefile", "a line about each thing that GASNet does"),
        mask("tracemask", "tracefile"),
        file("statsfile", "how often it did each, written at the end"),
        mask("statsmask", "statsfile"),
    )


def _provided() -> tuple[Parameter, ...]:
    """What Cray's runtime gives to a job, and here the job itself computes."""

    def provided(name: str, help_: str) -> Parameter:
        return Parameter(
            name,
            "string",
            "",
            help_ + " The job sees to it; what is set is ignored.",
            level=9,
            scope=Scope.CONSTANT,
            flags=Flag.DEFAULT_ONLY,
            synonyms=_names(name.upper()),
        )

    return (
        provided("pmi_gni_loc_addr", "Address of this host's NIC."),
        provided("pmi_gni_cookie", "Access code that all ranks of a job have in common."),
        provided("pmi_gni_ptag", "Protection tag that all ranks of a job have in common."),
        provided("pmi_gni_dev_id", "Which of a host's NICs is used."),
    )
