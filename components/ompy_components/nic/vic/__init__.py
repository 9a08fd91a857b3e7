"""NIC vic: an emulated Cisco VIC, in software over the datagram sockets of the net contract."""
