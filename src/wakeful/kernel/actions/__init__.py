"""What people and programs do to jobs and runs. Each action is one transaction."""
