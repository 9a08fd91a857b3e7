"""What `tools/bench surface` times: every communicating call of the API, as rows made from rules.

A family is a module with `rows(comm, found)`: it yields a `Row` for each way of calling each of its
methods. Which methods there are is read from the API (`called.py`), so that a new one is a row that
nobody knows yet, and the test of this package fails.
"""
