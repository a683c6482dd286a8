"""The process that runs jobs: its loop, its handlers, its watches, its housekeeping."""
