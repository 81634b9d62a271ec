"""The two tables of the contract, as files: reading, checking, writing."""
