"""Jobs, runs, events and explanations as people and programs see them: read-only."""
