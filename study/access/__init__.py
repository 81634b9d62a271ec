"""Who gets in: accounts and invites, admission to a session, the lead."""
