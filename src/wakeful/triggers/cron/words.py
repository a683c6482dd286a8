from __future__ import annotations
def describe(expression: str) -> str:
    return expression
