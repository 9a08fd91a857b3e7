"""coll sm: collectives of the ranks of one host, through memory they share."""
