"""Which frameworks there are, with the version of their contracts."""

from __future__ import annotations

from typing import Final

from ompy.frameworks import bml, btl, coll, conduit, io, osc, places, plm, pml
from ompy.frameworks.btl_base import sealing
from ompy.frameworks.nic import base as nic
from ompy.frameworks.paths import healing, path_watch
from ompy.mca.enumerators import Enumerator
from ompy.mca.groups import FrameworkInfo
from ompy.mca.parameter import Parameter, Synonym

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
        "trace",
        "What is kept of what happens in a rank.",
        None,
        (
            Parameter(
                "directory",
                "string",
                "",
                "Directory every rank writes its events to, for `ompy trace`; empty for none. "
                "ompy-run --trace sets it and adds the facts of the job.",
                level=2,
            ),
            Parameter(
                "limit",
                "unsigned_long",
                1_000_000,  # arbitrary: some 150 MB a rank
                "Events each rank writes at most; those beyond are counted.",
                level=5,
                unit="events",
                minimum=1,
            ),
            Parameter(
                "wire",
                "unsigned_int",
                0,
                "Bytes that a traced rank keeps of each packet it sends, and of each 64 KiB it "
                "writes to a connection, for `ompy trace --pcapng`; 0 for none.",
                level=5,
                unit="bytes",
                maximum=0xFFFF,  # IP, RFC 791: no packet is longer
            ),
            Parameter(
                "recent",
                "int",
                64,  # arbitrary: what a screen or two can show
                "Entries of the flight recorder, which is shown when a rank fails, takes too long "
                "or gets SIGUSR1; 0 turns it off.",
                level=5,
                unit="entries",
                minimum=0,
                maximum=100_000,
            ),
        ),
    ),
    FrameworkInfo(
        "check",
        "What a program does wrong, found while it runs.",
        None,
        (
            Parameter(
                "directory",
                "string",
                "",
                "Directory every rank writes its calls to, for what `ompy-run --check` says of "
                "them; empty for none. That option sets it.",
                level=6,
            ),
            Parameter(
                "limit",
                "unsigned_long",
                1_000_000,  # arbitrary: some 100 MB a rank
                "Calls each rank writes down at most; later ones are checked by themselves only.",
                level=5,
                unit="calls",
                minimum=1,
            ),
            Parameter(
                "buffering",
                "bool",
                False,
                "Have every standard send wait for its receive, so that what ends only because "
                "messages are buffered does not. The same as --check=buffering.",
                level=4,
            ),
        ),
    ),
    FrameworkInfo(
        "record",
        "What the program did not determine, written down, and given to it again.",
        None,
        (
            Parameter(
                "directory",
                "string",
                "",
                "Directory every rank writes its recording to; empty for none. "
                "ompy-run --record sets it and adds what the job is.",
                level=3,
            ),
            Parameter(
                "data",
                "bool",
                False,
                "Whether the bytes that ranks receive are recorded, so that one can run again "
                "without the others. The same as --record-data.",
                level=3,
            ),
            Parameter(
                "replay",
                "string",
                "",
                "Directory of a recording whose answers ranks get again; empty for none. "
                "`ompy replay` sets it.",
                level=6,
            ),
            Parameter(
                "unfinished",
                "unsigned_int",
                0,
                "How many ranks of the recording that is replayed did not come to their end. "
                "`ompy replay` sets it.",
                level=9,
                unit="ranks",
            ),
            Parameter(
                "patience",
                "unsigned_int",
                5,  # arbitrary: longer than most programs compute between two messages
                "In the replay of a job that was killed: how long a rank that is where its "
                "recording ends waits for others that are not.",
                level=6,
                unit="s",
            ),
            Parameter(
                "thread_patience",
                "unsigned_int",
                30,  # arbitrary: longer than most threads sleep between two calls
                "In the replay of a program with several threads that call MPI: how long the "
                "thread whose call comes next may sleep elsewhere, or poll where it did not, "
                "before the replay ends as one that differs.",
                level=6,
                unit="s",
            ),
        ),
    ),
    FrameworkInfo(
        "pml",
        "Point-to-point messages: matching and protocols.",
        pml.API,
        (
            Parameter(
                "ft_enable",
                "bool",
                False,
                "Whether a rank that dies is an error to those that need it, which the program may "
                "survive (Revoke, Shrink, Agree), instead of the end of the job.",
                level=2,
                synonyms=(Synonym("mpi_ft_enable"),),
            ),
        ),
        contracts=(pml.PmlComponent, pml.PmlWrapperComponent),
    ),
    FrameworkInfo(
        "bml",
        "Schedules messages over the BTL modules that reach a peer.",
        bml.API,
        (
            Parameter(
                "display_comm",
                "bool",
                False,
                "Whether rank 0 shows, when MPI starts, by which rails each host reaches each "
                "other. The same as --display-comm.",
                level=2,
            ),
            Parameter(
                "display_rails",
                "int",
                bml.DISPLAY_RAILS["end"],
                "What is shown of rails that break, where a PML fails over: none, a line each at "
                "the end, or live, as they break and heal, as well.",
                level=2,
                unit="choice",
                enumerator=Enumerator(bml.DISPLAY_RAILS),
            ),
            Parameter(
                "sample_rails",
                "bool",
                False,
                "Whether ranks tell the launcher now and then what each rail has carried. "
                "--watch-rails and --record-rails set it.",
                level=4,
            ),
            Parameter(
                "sample_interval_ms",
                "int",
                100,  # arbitrary: a cut that is mended within a second still shows as one
                "How often they do, while the program lets MPI work.",
                level=4,
                unit="ms",
                minimum=10,
            ),
        ),
        contracts=(bml.BmlComponent,),
    ),
    FrameworkInfo(
        "btl",
        "Byte transfer over one kind of path.",
        btl.API,
        (
            Parameter(
                "seal",
                "int",
                sealing.AUTO,
                "What protects connections between ranks after they have proven themselves: none; "
                "mac: nobody on the way can alter, forge or repeat anything; encrypt: nor read it "
                "(needs the package cryptography); auto: mac between hosts, none within one.",
                level=3,
                unit="choice",
                enumerator=Enumerator(sealing.POLICIES),
            ),
            Parameter(
                "probe_interval_ms",
                "int",
                path_watch.INTERVAL_MS,
                "How often the agents of two hosts ask each other over a rail on which a packet "
                "has waited in vain for its ACK; a tenth as often while they get answers.",
                level=5,
                unit="ms",
                minimum=1,
            ),
            Parameter(
                "probe_timeout_ms",
                "int",
                path_watch.TIMEOUT_MS,
                "After how much asking without an answer such a rail is dead, where a PML has "
                "asked for failover and may go on over another one. 0: nobody asks, and a BTL that "
                "has waited in vain goes on, or decides by itself.",
                level=4,
                unit="ms",
                minimum=0,
            ),
            Parameter(
                "probe_patience_ms",
                "int",
                path_watch.PATIENCE_MS,
                "The same where there is no failover, so that a dead rail is a failed message; "
                "probe_timeout_ms if that is more.",
                level=4,
                unit="ms",
                minimum=0,
            ),
            Parameter(
                "heal_answers",
                "int",
                healing.ANSWERS,
                "Answers of the other host's agent in a row after which a rail that had failed is "
                "taken back, where a PML fails over. 0: it never is.",
                level=4,
                unit="answers",
                minimum=0,
            ),
            Parameter(
                "heal_pause_max_ms",
                "int",
                healing.PAUSE_MAX_MS,
                "Longest pause between tries to connect again over such a rail; it begins with "
                f"{healing.PAUSE_MS} and doubles, and the tries never end.",
                level=5,
                unit="ms",
                minimum=healing.PAUSE_MS,
            ),
            Parameter(
                "heal_hold_ms",
                "int",
                healing.HOLD_MS,
                "How long a rail that fails a second time soon after it was taken back is left "
                "alone; three times as long for a third, seven times for a fourth. 0: not at all.",
                level=5,
                unit="ms",
                minimum=0,
            ),
            Parameter(
                "heal_hold_max_ms",
                "int",
                healing.HOLD_MAX_MS,
                "Longest time for which a flapping rail is left alone.",
                level=5,
                unit="ms",
                minimum=0,
            ),
            Parameter(
                "heal_decay_ms",
                "int",
                healing.DECAY_MS,
                "Time without a failure after which a rail's earlier ones count half.",
                level=6,
                unit="ms",
                minimum=1,
            ),
        ),
        contracts=(btl.BtlComponent,),
    ),
    FrameworkInfo(
        "nic",
        "Network interface cards, emulated ones too, for the BTLs that drive one.",
        nic.API,
        contracts=(nic.NicComponent,),
    ),
    FrameworkInfo(
        "coll",
        "Collective operations of a communicator.",
        coll.API,
        contracts=(coll.CollComponent,),
    ),
    FrameworkInfo(
        "osc",
        "One-sided communication in windows.",
        osc.API,
        (
            Parameter(
                "progress_thread",
                "bool",
                False,
                "Whether a rank that has a window lets a thread serve what others do in it while "
                "its program computes. Without, that waits for the rank's next MPI call.",
                level=4,
            ),
        ),
        contracts=(osc.OscComponent,),
    ),
    FrameworkInfo(
        "io",
        "Files that several ranks share.",
        io.API,
        contracts=(io.IoComponent,),
    ),
    FrameworkInfo(
        "conduit",
        "Active messages, and reading and writing of other ranks' segments, for GASNet.",
        conduit.API,
        contracts=(conduit.ConduitComponent,),
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
            Parameter(
                "fork_ranks",
                "bool",
                True,
                "Whether a rank whose program is a plain `python ...` of the launcher's own Python "
                "is a fork of its agent, which starts sooner than a new interpreter.",
                level=5,
            ),
            Parameter(
                "radix",
                "int",
                64,  # Open MPI 4.1: routed_radix
                "How many agents the launcher, or an agent, starts itself on other hosts; they "
                "start the next ones. 0 for no limit: the launcher starts all.",
                level=5,
                unit="agents",
                minimum=0,
            ),
            Parameter(
                "num_concurrent",
                "int",
                128,  # Open MPI 4.1: plm_rsh_num_concurrent
                "How many remote shells or sruns one process starts at the same time.",
                level=5,
                unit="processes",
                minimum=1,
                synonyms=(Synonym("plm_rsh_num_concurrent"), Synonym("plm_ssh_num_concurrent")),
            ),
            Parameter(
                "start_timeout_ms",
                "int",
                60_000,  # arbitrary: for slow logins; measured: ssh takes 0.9 s
                "How long agents on other hosts may take to be ready.",
                level=5,
                unit="ms",
                minimum=1,
            ),
            Parameter(
                "attach_timeout_ms",
                "int",
                300_000,  # arbitrary: 200 ranks on two busy cores take less; who has ended is known
                "How long a rank that starts waits for the first answer of its host's agent, which "
                "starts all ranks of the host before it answers any.",
                level=5,
                unit="ms",
                minimum=1,
            ),
            Parameter(
                "join_address",
                "string",
                "127.0.0.1",  # arbitrary: of this host alone, unless the user opens it
                "Numeric address at which the launcher of a job with --joinable listens for "
                "programs that join it; 0.0.0.0 for all of its host's.",
                level=5,
            ),
            Parameter(
                "heartbeat_ms",
                "int",
                250,  # arbitrary: with the misses below a dead host is known in under 2 s
                "How often the launcher and the agents on other hosts let each other hear from "
                "them; 0 for never.",
                level=5,
                unit="ms",
                minimum=0,
            ),
            Parameter(
                "heartbeat_misses",
                "int",
                6,  # arbitrary: 1.5 s; an agent never computes, so only a fault takes as long
                "After how many heartbeats without a word an agent on another host is lost.",
                level=5,
                unit="heartbeats",
                minimum=1,
            ),
            Parameter(
                "launcher_misses",
                "int",
                40,  # arbitrary: 10 s; a debugger may stop the launcher for a moment
                "After how many heartbeats without a word an agent on another host gives the "
                "launcher up and ends its ranks.",
                level=5,
                unit="heartbeats",
                minimum=1,
            ),
        ),
        contracts=(plm.PlmComponent,),
    ),
    *places.FRAMEWORKS,
)
