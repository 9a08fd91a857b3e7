"""Clock, timers, pollers and waiting: the real engine and the virtual one."""
