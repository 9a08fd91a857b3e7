"""How an ompy job ended, as a JUnit report."""
