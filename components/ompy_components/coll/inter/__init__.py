"""coll/inter: collectives between two groups."""
