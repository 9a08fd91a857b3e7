"""A rank that another launcher has started, and an agent that ends just when it comes."""

import os
import socket
import threading

import pytest
from ompy.data.errors import MPIError
from ompy.runtime.connections.control import Kind, encode
from ompy.runtime.launching.launchers import Membership
from ompy.runtime.passive.rank_joining import agent_socket_name, join

MEMBER = Membership("srun", f"test.{os.getpid()}", 0, 2, 0, 2, "", True, "")


def answering(listener, closed):
    """Ends as many connections as soon as they are there, and refuses the next."""
    for _ in range(closed):
        listener.accept()[0].close()
    connection, _ = listener.accept()
    connection.recv(4096)
    connection.sendall(encode(Kind.REFUSED, {"code": 1}, b"by the second"))
    connection.close()


@pytest.mark.parametrize("closed", [0, 1, 20])
def test_an_agent_that_ends_before_it_takes_us_is_tried_again(closed):
    """Its last rank may have gone just now, or its first taken too long to come."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(agent_socket_name(MEMBER))
        listener.listen(8)
        listener.settimeout(10)
        agent = threading.Thread(target=answering, args=(listener, closed), daemon=True)
        agent.start()
        with pytest.raises(MPIError, match="by the second"):
            join(MEMBER)
        agent.join(10)
