"""How many pairs and people a study needs, before it is paid for and after."""
