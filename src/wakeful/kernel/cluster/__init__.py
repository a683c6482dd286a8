"""Several nodes on one store: heartbeats, leases, take-over, and the nodes as people see them."""
