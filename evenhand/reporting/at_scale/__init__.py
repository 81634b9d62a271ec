"""Ratings beyond what one table in memory holds: reduced while they are read, here or by Dask."""
