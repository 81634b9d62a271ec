"""Access to a study: accounts and invites, admission to a session, the lead's login."""
