"""The surfaces: what people and programs meet. They take what the domains offer, and render; they hold no rules."""
