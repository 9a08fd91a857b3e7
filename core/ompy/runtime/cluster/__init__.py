"""A cluster that is only described: what a program would take there (`ompy sim --cluster`)."""
