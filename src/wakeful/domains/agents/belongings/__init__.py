"""What belongs to agents by their names: work items and events that wait, also for one that is gone."""
