"""Planning: the number of pairs and annotators a study needs, before it is paid for and after."""
