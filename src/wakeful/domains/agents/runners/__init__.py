"""Runners: how an agent is called.

What must stay true:
- a runner's program gets an argument list, never a shell, and sees the variables it was given, nothing else of ours;
- what a tool says decides, not its exit code alone: a lost session, a rate limit and an overload are recognised only in
  what a failed call printed, never in a good reply;
- a session's id is reported as soon as it is seen, so that a call that is cut off can be taken up again;
- nothing of a call outlives it.
"""
