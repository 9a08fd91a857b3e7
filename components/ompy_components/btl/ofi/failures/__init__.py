"""What is seen to fail, what an error says about, and what becomes of work that was under way."""
