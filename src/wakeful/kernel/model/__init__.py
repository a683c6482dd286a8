"""Jobs and runs as users, handlers and surfaces are given them."""
