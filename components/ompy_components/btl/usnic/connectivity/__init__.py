"""Whether packets of every size get through to each peer, and the map that is written of it."""
