"""Four interfaces of models, as far as agent programs use them: what a request asks, and how an answer is sent.

An answer is a text or one call of a tool. Each interface sends it whole or as events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

SHELLS = ("bash", "shell", "shell_command", "exec_command", "run_shell_command", "exec")
CACHED, FRESH, OUT = 1000, 100, 10  # tokens of every answer: from the cache, new, and those that come out
Event = tuple[str | None, Any]


class Asked(NamedTuple):
    """What a request asks: the words of its user, and what a tool answered last."""

    words: tuple[str, ...]
    tool_said: str | None
    tools: dict[str, dict[str, Any]]  # their parameters
    schema: dict[str, Any] | None  # of an answer that must be JSON


class Call(NamedTuple):
    """A tool to be called."""

    name: str
    arguments: dict[str, Any]


def shell_call(asked: Asked, command: str) -> Call | None:
    """A call of the shell among the tools of a request."""
    for name, parameters in asked.tools.items():
        if name.lower() in SHELLS:
            key = "cmd" if "cmd" in parameters else "command"
            takes_list = parameters.get(key, {}).get("type") == "array"
            words = {key: ["sh", "-c", command] if takes_list else command}
            return Call(name, {**words, **({"description": "Runs a command"} if "description" in parameters else {})})
    return None


def fits(schema: dict[str, Any]) -> Any:
    """Some value that a schema allows: programs ask small questions that way."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        return {key: fits(part) for key, part in schema.get("properties", {}).items()}
    return {"array": [], "string": "title", "boolean": False}.get(kind, 1)


class Anthropic:
    """`/v1/messages`"""

    def asked(self, body: dict[str, Any]) -> Asked:
        words, said = [], None
        for message in body.get("messages", ()):
            for block in _blocks(message["content"]):
                if block.get("type") == "tool_result":
                    said = _flat(block.get("content"))
                elif message["role"] == "user" and block.get("type") == "text":
                    words.append(block["text"])
        tools = {tool["name"]: tool.get("input_schema", {}).get("properties", {}) for tool in body.get("tools") or ()}
        form = (body.get("output_config") or {}).get("format") or {}
        return Asked(tuple(words), said, tools, form.get("schema"))

    def answer(self, body: dict[str, Any], number: int, what: str | Call) -> tuple[dict[str, Any], Iterator[Event]]:
        used = {"input_tokens": FRESH, "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": 0}
        is_call = isinstance(what, Call)
        block = (
            {"type": "tool_use", "id": f"toolu_{number}", "name": what.name, "input": what.arguments}
            if isinstance(what, Call)
            else {"type": "text", "text": what}
        )
        reason = "tool_use" if is_call else "end_turn"
        message = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model"),
            "content": [block], "stop_reason": reason, "stop_sequence": None, "usage": {**used, "output_tokens": OUT},
        }  # fmt: skip

        def events() -> Iterator[Event]:
            begun = {**message, "content": [], "stop_reason": None, "usage": {**used, "output_tokens": 1}}
            yield _named({"type": "message_start", "message": begun})
            opened = {**block, "input": {}} if is_call else {**block, "text": ""}
            yield _named({"type": "content_block_start", "index": 0, "content_block": opened})
            delta = (
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                if is_call
                else {"type": "text_delta", "text": block["text"]}
            )
            yield _named({"type": "content_block_delta", "index": 0, "delta": delta})
            yield _named({"type": "content_block_stop", "index": 0})
            ended = {"stop_reason": reason, "stop_sequence": None}
            yield _named({"type": "message_delta", "delta": ended, "usage": {**used, "output_tokens": OUT}})
            yield _named({"type": "message_stop"})

        return message, events()


class Responses:
    """`/v1/responses`"""

    def asked(self, body: dict[str, Any]) -> Asked:
        words, said = [], None
        given = body.get("input") or ()
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
            if str(item.get("type", "")).endswith("call_output"):
                said = _flat(item.get("output"))
            elif item.get("role") == "user":
                words += [block["text"] for block in _blocks(item.get("content")) if block.get("text")]
        tools = {tool.get("name", tool.get("type")): _parameters(tool) for tool in body.get("tools") or ()}
        return Asked(tuple(words), said, tools, ((body.get("text") or {}).get("format") or {}).get("schema"))

    def answer(self, body: dict[str, Any], number: int, what: str | Call) -> tuple[dict[str, Any], Iterator[Event]]:
        item: dict[str, Any]
        if isinstance(what, Call):
            arguments = json.dumps(what.arguments)
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": what.name,
                    "arguments": arguments, "status": "completed"}  # fmt: skip
        else:
            content = [{"type": "output_text", "text": what, "annotations": []}]
            item = {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        used = {"input_tokens": FRESH + CACHED, "input_tokens_details": {"cached_tokens": CACHED}, "output_tokens": OUT,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": FRESH + CACHED + OUT}  # fmt: skip
        begun = {
            "id": f"resp_{number}",
            "object": "response",
            "model": body.get("model"),
            "status": "in_progress",
            "output": [],
        }
        whole = {**begun, "status": "completed", "output": [item], "usage": used}

        def events() -> Iterator[Event]:
            yield _named({"type": "response.created", "response": begun})
            opened = {**item, "arguments": ""} if isinstance(what, Call) else {**item, "content": []}
            yield _named({"type": "response.output_item.added", "output_index": 0, "item": opened})
            if not isinstance(what, Call):
                place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
                yield _named({"type": "response.output_text.delta", **place, "delta": what})
                yield _named({"type": "response.output_text.done", **place, "text": what})
            yield _named({"type": "response.output_item.done", "output_index": 0, "item": item})
            yield _named({"type": "response.completed", "response": whole})

        return whole, events()


class Chat:
    """`/v1/chat/completions`"""

    def asked(self, body: dict[str, Any]) -> Asked:
        words, said = [], None
        for message in body.get("messages", ()):
            text = " ".join(block.get("text", "") for block in _blocks(message.get("content")))
            if message["role"] == "tool":
                said = text
            elif message["role"] == "user":
                words.append(text)
        tools = {tool["function"]["name"]: _parameters(tool["function"]) for tool in body.get("tools") or ()}
        form = (body.get("response_format") or {}).get("json_schema") or {}
        return Asked(tuple(words), said, tools, form.get("schema"))

    def answer(self, body: dict[str, Any], number: int, what: str | Call) -> tuple[dict[str, Any], Iterator[Event]]:
        message: dict[str, Any] = {"role": "assistant", "content": None if isinstance(what, Call) else what}
        if isinstance(what, Call):
            function = {"name": what.name, "arguments": json.dumps(what.arguments)}
            message["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
        used = {"prompt_tokens": FRESH + CACHED, "completion_tokens": OUT, "total_tokens": FRESH + CACHED + OUT,
                "prompt_tokens_details": {"cached_tokens": CACHED}}  # fmt: skip
        reason = "tool_calls" if isinstance(what, Call) else "stop"
        about = {"id": f"chat_{number}", "created": 1_790_000_000, "model": body.get("model")}
        whole = {**about, "object": "chat.completion", "usage": used,
                 "choices": [{"index": 0, "message": message, "finish_reason": reason}]}  # fmt: skip

        def events() -> Iterator[Event]:
            part = {**about, "object": "chat.completion.chunk"}
            yield None, {**part, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
            yield None, {**part, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
            yield None, {**part, "choices": [], "usage": used}
            yield None, "[DONE]"

        return whole, events()


class Gemini:
    """`/v1beta/models/MODEL:generateContent` and `:streamGenerateContent`"""

    def asked(self, body: dict[str, Any]) -> Asked:
        words, said = [], None
        for content in body.get("contents", ()):
            for part in content.get("parts", ()):
                if "functionResponse" in part:
                    said = json.dumps(part["functionResponse"].get("response"))
                elif content.get("role") == "user" and part.get("text"):
                    words.append(part["text"])
        named = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations", ())]
        tools = {one["name"]: _parameters(one, "parametersJsonSchema") for one in named}
        config = body.get("generationConfig") or {}
        is_json = config.get("responseMimeType") == "application/json"
        schema = config.get("responseJsonSchema") or config.get("responseSchema") or {}
        return Asked(tuple(words), said, tools, schema if is_json else None)

    def answer(self, body: dict[str, Any], number: int, what: str | Call) -> tuple[dict[str, Any], Iterator[Event]]:
        del body
        is_call = isinstance(what, Call)
        part = {"functionCall": {"name": what.name, "args": what.arguments}} if is_call else {"text": what}
        used = {"promptTokenCount": FRESH + CACHED, "cachedContentTokenCount": CACHED, "candidatesTokenCount": OUT,
                "totalTokenCount": FRESH + CACHED + OUT}  # fmt: skip
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        whole = {"candidates": [candidate], "usageMetadata": used, "responseId": f"r{number}"}
        return whole, iter([(None, whole)])


Interface = Anthropic | Responses | Chat | Gemini


def interface_of(path: str) -> Interface | None:
    """Which interface an address belongs to."""
    if path.endswith("/messages"):
        return Anthropic()
    if path.endswith("/responses"):
        return Responses()
    if path.endswith("/chat/completions"):
        return Chat()
    return Gemini() if path.endswith((":generateContent", ":streamGenerateContent")) else None


def _named(event: dict[str, Any]) -> Event:
    return event["type"], event


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _parameters(tool: dict[str, Any], key: str = "parameters") -> dict[str, Any]:
    found = tool.get(key) or tool.get("parameters") or {}
    return found.get("properties", {}) if isinstance(found, dict) else {}


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content or ())
