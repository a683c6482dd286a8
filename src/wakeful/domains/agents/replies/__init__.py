"""Replies of agents: where each one goes is decided when its run starts, and it is stored for delivery when it ends."""
