"""Speaking to providers: what is asked of whom, with which keys, by which SDK."""
