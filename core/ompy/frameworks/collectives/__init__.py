"""How collective calls run: who serves them, in which order they come, their messages and steps."""
