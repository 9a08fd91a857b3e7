"""BTL usnic: a reliable transport of its own over unreliable datagrams."""
