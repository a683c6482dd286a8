"""How fast Wakeful is, measured beside its peers on the same machine in the same hour.

`python -m bench` is the whole of it, `--quick` the part that takes a minute and needs no peers. What each figure means
is said in docs/benchmarks.md.
"""

from __future__ import annotations
