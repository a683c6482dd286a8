"""Rate limits of accounts: how long one lasts, which starts wait for it, when people hear of it, and clearing it."""
