"""How packets of a peer become reliable: windows, ACKs, sending again. There is no I/O in it."""
