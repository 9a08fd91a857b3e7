"""Which frameworks there are, with the version of their contracts."""

from __future__ import annotations

from typing import Final

from ompy.frameworks import bml, btl, coll, plm, pml
from ompy.mca.groups import FrameworkInfo
from ompy.mca.parameter import Parameter

CATALOG: Final = (
    FrameworkInfo(
        "engine",
        "How a rank waits and what drives it.",
        None,
        (
            Parameter(
                "loop",
                "string",
                "auto",
                "Event loop a rank sleeps in when it has been idle for long.",
                level=5,
                choices={
                    "auto": "uvloop where it can be imported",
                    "uvloop": "uvloop, or an error",
                    "asyncio": "the standard library's loop",
                },
            ),
            Parameter(
                "spin_us",
                "int",
                50,  # reference performance.md 4: spin 20 to 50 us when every rank has a core
                "How long a waiting rank polls before it gives its core away between polls.",
                level=5,
                unit="us",
                minimum=0,
            ),
            Parameter(
                "park_ms",
                "int",
                1,  # reference performance.md 4: park after about 1 ms idle
                "How long a waiting rank is idle before it sleeps.",
                level=5,
                unit="ms",
                minimum=0,
            ),
        ),
    ),
    FrameworkInfo(
        "pml",
        "Point-to-point messages: matching and protocols.",
        pml.API,
        contracts=(pml.PmlComponent, pml.PmlWrapperComponent),
    ),
    FrameworkInfo(
        "bml",
        "Schedules messages over the BTL modules that reach a peer.",
        bml.API,
        contracts=(bml.BmlComponent,),
    ),
    FrameworkInfo(
        "btl",
        "Byte transfer over one kind of path.",
        btl.API,
        contracts=(btl.BtlComponent,),
    ),
    FrameworkInfo(
        "coll",
        "Collective operations of a communicator.",
        coll.API,
        contracts=(coll.CollComponent,),
    ),
    FrameworkInfo(
        "plm",
        "Starts one agent per host.",
        plm.API,
        (
            Parameter(
                "kill_grace_ms",
                "int",
                1000,  # reference openmpi.md 2.4.2: a short wait; Open MPI waits a second
                "How long ranks that are being ended have from SIGTERM to SIGKILL.",
                level=5,
                unit="ms",
                minimum=0,
            ),
        ),
        contracts=(plm.PlmComponent,),
    ),
)
