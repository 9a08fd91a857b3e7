"""HELLOs there and back, and what is none."""

from __future__ import annotations

import pytest
from ompy.frameworks.nic.verbs import Destination
from ompy.frameworks.paths.path_life import Stage
from ompy_components.btl.openib.connections.hello import BadHello, Hello, pack_hello, unpack_hello


@pytest.mark.parametrize("stage", Stage)
def test_hello_there_and_back(stage: Stage) -> None:
    several = tuple(Destination(3, number, "10.0.0.1", 4711, number) for number in range(5))
    hello = Hello(7, stage, several)
    data = pack_hello(hello)
    assert unpack_hello(memoryview(data)) == hello
    unknown = bytes([data[0], 9]) + data[2:]
    for other in (data[:-1], data + b"\0", data[:5], b"", b"\x09" + data[1:], unknown):
        with pytest.raises(BadHello):
            unpack_hello(memoryview(other))
