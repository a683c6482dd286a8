"""The job kernel: what is due, what may start, what happened, what comes next. It does not depend on agents or HTTP."""
