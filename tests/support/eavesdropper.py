"""Somebody on the path who only listens: `python -m tests.support.eavesdropper FILE`.

Writes down the bytes of every TCP connection that passes in its namespace, each direction
of it in one piece. It says "ready", and writes when it is told to end (SIGTERM).
"""

from __future__ import annotations

import signal
import socket
import struct
import sys
from pathlib import Path
from typing import NoReturn

from tests.support.injector import ALL_PROTOCOLS, ETHERNET, Segment

FRAME_MAX = 1 << 17  # bytes; what leaves an interface that cuts up large segments itself


def listen(path: Path) -> NoReturn:
    """Until SIGTERM."""
    flows: dict[bytes, dict[int, bytes]] = {}

    def write(*_: object) -> NoReturn:
        whole = [b"".join(pieces[place] for place in sorted(pieces)) for pieces in flows.values()]
        path.write_bytes(b"\n\0\n".join(whole))
        sys.exit()

    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS)) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        signal.signal(signal.SIGTERM, write)
        print("ready", flush=True)
        while True:
            frame = wire.recv(FRAME_MAX)
            segment = Segment.of(frame)
            if segment is not None and segment.payload:
                header = ETHERNET + (frame[ETHERNET] & 15) * 4
                (number,) = struct.unpack_from("!I", frame, header + 4)
                flows.setdefault(segment.flow, {})[number] = segment.payload


if __name__ == "__main__":
    listen(Path(sys.argv[1]))
