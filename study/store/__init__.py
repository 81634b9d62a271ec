"""Where a study is kept: the database, its tables, and what is read from and written to them."""
