"""`%%ompy`: cells of an IPython notebook on ranks; the part of the notebook's kernel."""
