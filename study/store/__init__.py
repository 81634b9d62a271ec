"""The store of a study: the database, its tables, and what is read from and written to them."""
