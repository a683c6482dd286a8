"""Topics: events that handlers publish and consume, and the inputs that caused them."""
