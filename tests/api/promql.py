"""Reads expressions of Prometheus far enough to know that they are well formed and which metrics and labels they use.

The part of the language that our dashboard and alert rules are written in, and an error for everything else.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TOKEN = re.compile(
    r'\s*(?:(?P<duration>\[\d+[smhd]\])|(?P<number>\d+(?:\.\d+)?)|(?P<text>"[^"]*")'
    r"|(?P<name>[a-zA-Z_:][\w:]*)|(?P<sign>=~|!~|!=|==|>=|<=|[-+*/<>=(){},]))"
)
FUNCTIONS = {"rate", "increase", "histogram_quantile", "absent", "time", "vector"}
AGGREGATIONS = {"sum", "max", "min", "avg", "count"}
OPERATORS = {"+", "-", "*", "/", ">", "<", ">=", "<=", "==", "!=", "or", "and"}


class Used(NamedTuple):
    """A metric in an expression, with the labels that are asked of it."""

    metric: str
    labels: frozenset[str]


def tokens(text):
    found, at = [], 0
    while at < len(text.rstrip()):
        match = TOKEN.match(text, at)
        assert match is not None, f"{text[at:]!r} is no PromQL that is known here"
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return [*found, ("end", "")]


class Parser:
    """One expression."""

    def __init__(self, text):
        self._tokens = tokens(text)
        self._at = 0
        self.used = []

    def parse(self):
        self._expression(frozenset())
        assert self._kind == "end", f"{self._tokens[self._at :]} is left over"
        return self.used

    @property
    def _kind(self):
        return self._tokens[self._at][0]

    @property
    def _value(self):
        return self._tokens[self._at][1]

    def _next(self, *wanted):
        value = self._value
        assert not wanted or value in wanted, f"{value!r} stands where {wanted} should"
        self._at += 1
        return value

    def _expression(self, by):
        self._operand(by)
        while self._value in OPERATORS:
            self._next()
            self._operand(by)

    def _operand(self, by):
        if self._kind == "number":
            self._next()
        elif self._value == "(":
            self._next()
            self._expression(by)
            self._next(")")
        elif self._value in AGGREGATIONS:
            self._next()
            inner = by | (self._names() if self._value == "by" and self._next() else frozenset())
            self._arguments(inner)
        elif self._value in FUNCTIONS:
            self._next()
            self._arguments(by)
        else:
            self._selector(by)

    def _arguments(self, by):
        self._next("(")
        while self._value != ")":
            self._expression(by)
            if self._value != ")":
                self._next(",")
        self._next(")")

    def _names(self):
        self._next("(")
        found = set()
        while self._value != ")":
            found.add(self._next())
            if self._value != ")":
                self._next(",")
        self._next(")")
        return frozenset(found)

    def _selector(self, by):
        assert self._kind == "name", f"{self._value!r} is no metric"
        metric, labels = self._next(), set(by)
        if self._value == "{":
            self._next()
            while self._value != "}":
                labels.add(self._next())
                self._next("=", "!=", "=~", "!~")
                assert self._kind == "text"
                self._next()
                if self._value != "}":
                    self._next(",")
            self._next("}")
        if self._kind == "duration":
            self._next()
        self.used.append(Used(metric, frozenset(labels)))
