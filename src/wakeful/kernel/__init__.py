"""The job kernel: what is due, what may start, what happened, what comes next. It knows nothing of agents or HTTP."""
