"""The built-in job kind `command`: a program in a process group of its own, with a clean environment.

What must stay true:
- there is no shell: the argument list reaches the program as it is written;
- the program sees a short list of variables and what the job names, nothing else of ours;
- nothing of a command outlives its run: background children are killed when it ends, and the whole group when the run
  is cancelled, runs out of time or the scheduler stops. A child that left the group on purpose (setsid) lives on, but
  nobody listens to it any more;
- we never signal a process we did not start. The leader stays unreaped until its group has been killed, because as
  long as it holds the number no other group can get it;
- what a killed scheduler left running is found again by `kill_leftover`, before the slot is run once more.
"""
