"""`wakeful.yaml`: found, read, filled in from the environment, and checked to the last key.

`reading` knows YAML, lines and `${NAME}`, and needs no more than that to say which store is meant; `models` and
`loading` say what may be in the file. Nothing here is imported until a file is found or named.
"""

from __future__ import annotations
