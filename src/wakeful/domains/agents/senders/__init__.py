"""What runs of agents write: as whose text it counts, and how much of it there may be.

What must stay true:
- a run that was given text from outside is on record as fed before its program is called;
- what a fed run writes is text from outside, and a run that follows from it is fed: one that hears an event of it, that
  it woke, that tries it again, and that starts after it;
- an event is replaced, and makes room, only for one of its own sender; those of people and schedules never for a run's.
"""
