"""Windows of explored worlds: which operations need an order, and who reads in vain."""
