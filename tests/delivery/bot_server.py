"""A Bot API on this machine: people write and press here, and what a bot sends is kept. Fails as it is asked to."""

from __future__ import annotations

import html
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

TOKEN = "123456:planted-bot-token"  # noqa: S105 - planted
PATIENCE = 120
ZOE = 42


class BotServer:
    """One bot's service. Everything is guarded by one condition, which is notified of every call."""

    def __init__(self):
        self.changed = threading.Condition()
        self.updates = []
        self.calls = []  # (method, params), in the order in which they came
        self.answers = {}  # by method: what comes instead, one after the other; a function is called with the params
        self.polls = 0  # how many were begun; an older one ends when a newer comes
        self.polling = 0  # how many wait right now
        self.confirmed = 0
        self.on_call = None  # called with each method before it is answered
        self.after_call = None  # called with each method and its answer once that was written
        self._next = 7
        self._messages = 100
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        with self.changed:
            self.polls += 1
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    # -- what people do -----------------------------------------------------------------------------------------------

    def write(self, text, sender=ZOE, chat=None, kind="private"):
        person = {"id": sender, "is_bot": False, "first_name": "Zoe"}
        where = {"id": chat if chat is not None else sender, "type": kind}
        self._push({"message": {"message_id": 1, "date": 1_700_000_000, "from": person, "chat": where, "text": text}})

    def press(self, data, sender=ZOE, query=None, message=5):
        where = {"message_id": message, "date": 1_700_000_000, "chat": {"id": sender, "type": "private"}}
        pressed = {"id": query or f"q{self._next}", "from": {"id": sender, "is_bot": False, "first_name": "Zoe"}}
        self._push({"callback_query": {**pressed, "chat_instance": "1", "message": where, "data": data}})

    def _push(self, update):
        with self.changed:
            self.updates.append({"update_id": self._next, **update})
            self._next += 1
            self.changed.notify_all()

    # -- what the bot did ---------------------------------------------------------------------------------------------

    def of(self, method):
        return [params for name, params in self.calls if name == method]

    def texts(self, chat=ZOE):
        return [params["text"] for params in self.of("sendMessage") if str(params["chat_id"]) == str(chat)]

    def buttons(self, chat=ZOE):
        """The buttons under the last message to a chat that has any: what a press sends, by label."""
        found = [
            call for call in self.of("sendMessage") if str(call["chat_id"]) == str(chat) and "reply_markup" in call
        ]
        rows = found[-1]["reply_markup"]["inline_keyboard"]
        return {one["text"]: one["callback_data"] for row in rows for one in row}

    def until(self, is_so):
        """Wait until something holds; what it is then."""
        with self.changed:
            assert self.changed.wait_for(is_so, PATIENCE), self.calls
            return is_so()

    def until_text(self, part, chat=ZOE):
        return self.until(lambda: next((text for text in self.texts(chat) if part in text), None))

    def fail(self, method, *answers):
        """Answer the next calls of a method so: (code, description) with or without parameters, or None for well."""
        with self.changed:
            self.answers.setdefault(method, []).extend(answers)

    # -- answering ----------------------------------------------------------------------------------------------------

    def _handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                token, _, method = self.path.removeprefix("/bot").partition("/")
                status, answer = server.answer(token, method, read_params(self.headers["Content-Type"], body))
                if status is None:  # taken, and no word about it
                    self.close_connection = True
                    return
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                    self.wfile.flush()
                except OSError:
                    return
                if server.after_call is not None:
                    server.after_call(method, answer)

            def log_message(self, *_):
                """A test reads `calls` instead."""

        return Handler

    def answer(self, token, method, params):
        if self.on_call is not None:
            self.on_call(method, params)
        if token != TOKEN:
            return 401, {"ok": False, "error_code": 401, "description": "Unauthorized"}
        with self.changed:
            self.calls.append((method, params))
            self.changed.notify_all()
            planned = self.answers.get(method)
            said = planned.pop(0) if planned else None
            if said is not None:
                return refusal(said)
            if method == "getUpdates":
                return self._poll(params)
            if method == "sendMessage" and (wrong := _refusal(params)) is not None:
                self.calls.pop()  # nobody gets it
                return 400, {"ok": False, "error_code": 400, "description": f"Bad Request: {wrong}"}
            if method in ("sendMessage", "sendDocument"):
                self._messages += 1
                return 200, {"ok": True, "result": {"message_id": self._messages}}
            return 200, {"ok": True, "result": True}

    def _poll(self, params):
        offset = int(params.get("offset", 0))
        self.confirmed = max(self.confirmed, offset)
        self.updates = [update for update in self.updates if update["update_id"] >= offset]
        self.polls += 1
        own = self.polls
        self.polling += 1
        self.changed.notify_all()
        self.changed.wait_for(lambda: self.updates or self.polls != own, float(params.get("timeout", 0)))
        self.polling -= 1
        if self.polls != own:
            text = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
            return 409, {"ok": False, "error_code": 409, "description": text}
        return 200, {"ok": True, "result": self.updates[: int(params.get("limit", 100))]}


def refusal(said):
    if said == "lost":
        return None, b""
    if isinstance(said, bytes):
        return 200, said
    code, description, *parameters = said
    answer = {"ok": False, "error_code": code, "description": description}
    return code, {**answer, "parameters": parameters[0]} if parameters else answer


def read_params(content_type, body):
    if content_type.startswith("application/json"):
        return json.loads(body)
    if content_type.startswith("multipart/form-data"):
        mark = content_type.partition("boundary=")[2].encode()
        found = {}
        for part in body.split(b"--" + mark)[1:-1]:
            head, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
            found[re.search(rb'name="(\w+)"', head)[1].decode()] = content.decode()
        return found
    return dict(parse_qsl(body.decode()))


@contextmanager
def bot_server():
    made = BotServer()
    try:
        yield made
    finally:
        made.close()


def _refusal(params):
    """What Telegram has against a text: it counts UTF-16 units of what is shown, and sends nothing that is blank."""
    shown = params["text"]
    if "parse_mode" in params:
        shown = html.unescape(re.sub(r"</?(b|i|a|pre|code)( [^>]*)?>", "", shown))
    if not re.sub(r"[\s\u200b\u2800\u3164]", "", shown):
        return "message text is empty"
    return "message is too long" if len(shown.encode("utf-16-le")) // 2 > 4_096 else None
