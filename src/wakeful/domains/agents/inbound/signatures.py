"""Whether the sender of a request to a webhook knows its secret: pure functions over raw bytes.

| `verify` | header | signed | replays are refused by |
|---|---|---|---|
| standard | `webhook-signature: v1,BASE64` | `{id}.{timestamp}.{body}` | time and `webhook-id` |
| github | `X-Hub-Signature-256: sha256=HEX` | `{body}` | `X-GitHub-Delivery` and the body |
| slack | `X-Slack-Signature: v0=HEX` | `v0:{timestamp}:{body}` | time and `event_id` |
| bearer | `Authorization: Bearer SECRET` | nothing | `Idempotency-Key`, where it is given |

Any other scheme is described by the fields of `Scheme`. An id that is not signed can be exchanged, so what is signed
counts once as well. A header that is there twice never counts. Comparisons take the
same time wherever texts differ, and the answer does not say which part was wrong.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.counting import counted
from wakeful.domains.agents.runners.paths import value_at
from wakeful.errors import InvalidSetting

TOLERANCE_MS = 300_000
LONGEST_ID = 300
SHORTEST_SECRET = 16  # characters: a shorter one can be found by trying
MOST_SIGNATURES = 10
NAMED = ("standard", "github", "slack", "bearer")
_PLACE = re.compile(r"\{(id|timestamp|body)\}")
_TIME = re.compile(r"[0-9]{1,14}")
_MILLISECONDS_FROM = 100_000_000_000


class ValueLocation(NamedTuple):
    """Where a value stands: in a header, perhaps after a prefix, or at paths in the body's JSON."""

    header: str | None = None
    prefix: str = ""
    body: tuple[str, ...] = ()


class Scheme(NamedTuple):
    """How requests are signed."""

    header: str
    prefix: str = ""
    algorithm: str = "sha256"  # sha256, sha512, or token: the header carries the secret itself
    encoding: str = "hex"  # or base64
    signed: str = "{body}"
    timestamp: ValueLocation | None = None
    tolerance_ms: int = TOLERANCE_MS
    id: ValueLocation | None = None
    is_encoded: bool = False  # the secret is base64, perhaps after whsec_

    @property
    def is_id_signed(self) -> bool:
        """Whether nobody can exchange the id of a captured request; a token signs nothing, and must not be captured."""
        in_header = self.id is not None and self.id.header is not None
        return self.algorithm == "token" or "{id}" in self.signed or not in_header


class SignedRequest(NamedTuple):
    """A request as it came: the values of each header under its name in small letters, and the body."""

    headers: Mapping[str, Sequence[str]]
    body: bytes
    values: Callable[[], Any] = lambda: None
    """The body, where it is JSON or a form; read only once the signature is known to be right."""

    def header(self, name: str) -> str | None:
        """The header's value; None where it is missing or there twice."""
        found = self.headers.get(name.lower(), ())
        return found[0] if len(found) == 1 else None


class Verified(NamedTuple):
    """A verified request: its id at the sender, and where that is not signed, a digest of what is."""

    delivery_id: str | None
    digest: str | None = None


SCHEMES = {
    "standard": Scheme(
        "webhook-signature",
        "v1,",
        encoding="base64",
        signed="{id}.{timestamp}.{body}",
        timestamp=ValueLocation("webhook-timestamp"),
        id=ValueLocation("webhook-id"),
        is_encoded=True,
    ),
    "github": Scheme("x-hub-signature-256", "sha256=", id=ValueLocation("x-github-delivery")),
    "slack": Scheme(
        "x-slack-signature",
        "v0=",
        signed="v0:{timestamp}:{body}",
        timestamp=ValueLocation("x-slack-request-timestamp"),
        id=ValueLocation(body=("event_id", "trigger_id")),
    ),
    "bearer": Scheme("authorization", "bearer ", algorithm="token", id=ValueLocation("idempotency-key")),
}


def scheme_of(webhook: Mapping[str, Any]) -> Scheme:
    """The scheme that a schedule's settings name or describe."""
    verify = webhook.get("verify", "standard")
    scheme = SCHEMES[verify] if isinstance(verify, str) else _described(verify)
    return scheme if webhook.get("tolerance") is None else scheme._replace(tolerance_ms=webhook["tolerance"])


def key_of(scheme: Scheme, secret: str) -> bytes:
    """The bytes a secret stands for; InvalidSetting, as the end of a sentence, for one that cannot be used."""
    text = secret.strip().removeprefix("whsec_") if scheme.is_encoded else secret.strip()
    if not text:
        raise InvalidSetting("is empty.")
    if len(text) < SHORTEST_SECRET:
        raise InvalidSetting(
            f"has {counted(len(text), 'character')}, and needs {SHORTEST_SECRET}: make one with openssl rand -hex 32."
        )
    if not scheme.is_encoded:
        return secret.encode("utf-8", "surrogateescape")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise InvalidSetting("is not base64: a secret of Standard Webhooks looks like whsec_MfKQ9r8G….")
    return key


def verify(scheme: Scheme, keys: Sequence[bytes], given: SignedRequest, now: int) -> Verified | None:
    """What is known of a request that was signed with one of the keys, in time; None for any other."""
    timestamp = _in_header(given, scheme.timestamp)
    delivery_id = _in_header(given, scheme.id)
    if not _is_signed(scheme, keys, given, timestamp or "", delivery_id or ""):
        return None
    # Only now may the body be parsed: its sender knows the secret.
    if scheme.timestamp is not None:
        at = _moment(timestamp if scheme.timestamp.header is not None else _in_body(given, scheme.timestamp))
        if at is None or abs(now - at) > scheme.tolerance_ms:
            return None
    if scheme.id is not None and scheme.id.header is None:
        delivery_id = _in_body(given, scheme.id)
    if "{id}" in scheme.signed and (not delivery_id or "." in delivery_id):  # a dot would let its end be moved
        return None
    if delivery_id and (len(delivery_id) > LONGEST_ID or not delivery_id.isprintable()):
        return None
    if scheme.algorithm == "token":
        return Verified(delivery_id or None)
    # Without an id, the same signed bytes are the same request. The header is no part of them: more may stand in it.
    signed = _message(scheme.signed, {"timestamp": timestamp or "", "id": delivery_id or ""}, given.body)
    digest = hashlib.sha256(signed).hexdigest()
    return Verified(delivery_id or f"sha256:{digest}", None if scheme.is_id_signed else digest)


def _is_signed(scheme: Scheme, keys: Sequence[bytes], given: SignedRequest, timestamp: str, delivery_id: str) -> bool:
    value = given.header(scheme.header)
    if value is None:
        return False
    if scheme.algorithm == "token":
        return _is_token(scheme, keys, value)
    message = _message(scheme.signed, {"timestamp": timestamp, "id": delivery_id}, given.body)
    wanted = [_encoded(scheme, hmac.new(key, message, scheme.algorithm).digest()) for key in keys]
    pairs = [(one, other) for one in _signatures(scheme, value) for other in wanted]
    return any([hmac.compare_digest(one, other) for one, other in pairs])  # noqa: C419 - all of them, for the time


def _is_token(scheme: Scheme, keys: Sequence[bytes], value: str) -> bool:
    if value[: len(scheme.prefix)].lower() != scheme.prefix.lower():
        return False
    # Digests have one length: how long the secret is does not show either.
    said = hashlib.sha256(value[len(scheme.prefix) :].strip().encode("utf-8", "surrogateescape")).digest()
    return any([hmac.compare_digest(said, hashlib.sha256(key).digest()) for key in keys])  # noqa: C419 - as above


def _signatures(scheme: Scheme, value: str) -> list[bytes]:
    """The signatures in a header: several may be there while a secret is replaced by another."""
    items = value.split() if "," in scheme.prefix else value.replace(",", " ").split()
    found = [item[len(scheme.prefix) :] for item in items if item.startswith(scheme.prefix)]
    return [item.encode("utf-8", "replace") for item in found[:MOST_SIGNATURES]]


def _encoded(scheme: Scheme, digest: bytes) -> bytes:
    return base64.b64encode(digest) if scheme.encoding == "base64" else digest.hex().encode()


def _message(template: str, values: Mapping[str, str], body: bytes) -> bytes:
    parts = _PLACE.split(template)  # text and names in turn
    return b"".join(
        text.encode() if index % 2 == 0 else body if text == "body" else values[text].encode("utf-8", "surrogateescape")
        for index, text in enumerate(parts)
    )


def _in_header(given: SignedRequest, where: ValueLocation | None) -> str | None:
    if where is None or where.header is None:
        return None
    value = given.header(where.header)
    if value is None or not where.prefix:
        return value
    found = [item[len(where.prefix) :] for item in value.replace(",", " ").split() if item.startswith(where.prefix)]
    return found[0] if len(found) == 1 else None


def _in_body(given: SignedRequest, where: ValueLocation) -> str | None:
    values = given.values()
    for path in where.body:
        value = value_at(values, path)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return None


def _moment(text: str | None) -> int | None:
    """Epoch milliseconds of a whole number of seconds or milliseconds."""
    if text is None or not _TIME.fullmatch(text):
        return None
    number = int(text)
    return number if number >= _MILLISECONDS_FROM else number * 1000


def _described(verify: Mapping[str, Any]) -> Scheme:
    return Scheme(
        verify["header"],
        verify.get("prefix", ""),
        verify.get("algorithm", "sha256"),
        verify.get("encoding", "hex"),
        verify.get("signed", "{body}"),
        _where(verify.get("timestamp")),
        verify.get("tolerance", TOLERANCE_MS),
        _where(verify.get("id")),
    )


def _where(given: Mapping[str, Any] | None) -> ValueLocation | None:
    if given is None:
        return None
    body = (given["body"],) if given.get("body") else ()
    return ValueLocation(given.get("header"), given.get("prefix", ""), body)
