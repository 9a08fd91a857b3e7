"""What launcher and agents decide: machines without sockets, processes, signals or clocks."""
