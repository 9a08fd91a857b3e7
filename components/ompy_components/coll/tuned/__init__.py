"""coll tuned: the algorithm that suits the amount of data and the number of ranks."""
