"""coll basic: the textbook algorithms over point-to-point messages."""
