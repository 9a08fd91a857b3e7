"""coll/self: collectives of one member."""
