"""`ompy sim`, and worlds that it has kept."""
