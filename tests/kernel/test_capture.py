"""What is kept of a stream, cut anywhere, broken anywhere."""

from __future__ import annotations

import re
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.domains.command.capture import SHORTEST_SECRET, Excerpt, Redactor
from wakeful.domains.command.log_file import LogFile, MarkedLines

chunks = st.lists(st.binary(max_size=40), max_size=12)


def excerpt(limit, *parts):
    kept = Excerpt(limit)
    for part in parts:
        kept.add(part)
    return kept


def test_what_fits_is_kept_whole():
    kept = excerpt(10, b"01234", b"56789")
    assert (kept.text(), kept.total, kept.truncated) == ("0123456789", 10, False)


def test_one_byte_too_many_is_left_out_of_the_middle():
    kept = excerpt(10, b"01234", b"x", b"56789")
    assert (kept.text(), kept.total, kept.truncated) == ("01234\n[… 1 byte left out …]\n56789", 11, True)


def test_a_limit_of_nothing_keeps_the_count():
    assert excerpt(0).text() == ""
    assert excerpt(0, b"abc").text() == "\n[… 3 bytes left out …]\n"


def test_a_character_that_the_cut_would_split_is_left_out_whole():
    assert excerpt(12, "123ü€€€€€€€".encode()).text() == "123ü\n[… 15 bytes left out …]\n€€"
    assert excerpt(10, "€€€€€€".encode()).text() == "€\n[… 12 bytes left out …]\n€"


@given(chunks, st.integers(0, 60))
def test_how_a_stream_arrives_makes_no_difference(parts, limit):
    whole = b"".join(parts)
    pieces, once = excerpt(limit, *parts), excerpt(limit, whole)
    assert (pieces.text(), pieces.total, pieces.truncated) == (once.text(), len(whole), len(whole) > limit)


@given(chunks, st.integers(0, 60))
def test_any_bytes_become_text_that_every_database_takes(parts, limit):
    text = excerpt(limit, *parts).text()
    assert "\0" not in text
    assert text.encode().decode() == text


def test_a_long_stream_of_short_lines_keeps_its_end():
    kept = Excerpt(1000)
    for number in range(50_000):
        kept.add(b"%06d\n" % number)
    assert kept.text().endswith("049998\n049999\n")
    assert len(kept.text()) < 1100


def redacted(secrets, parts):
    redactor = Redactor(secrets)
    return b"".join([*map(redactor.feed, parts), redactor.flush()])


@given(st.data())
def test_a_secret_is_found_however_the_stream_is_cut(data):
    alphabet = st.sampled_from("ab")
    secret = data.draw(st.text(alphabet, min_size=SHORTEST_SECRET, max_size=9))
    words = data.draw(st.lists(st.just(secret) | st.text(alphabet, max_size=9), max_size=8))
    whole = "".join(words).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    parts = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert secret.encode() not in redacted([secret], parts)
    assert redacted([], parts) == whole


@pytest.mark.parametrize(
    ("secrets", "parts", "seen"),
    [
        (["hunter2"], [b"is hunter2!"], b"is [redacted]!"),
        (["hunter2"], [b"is hun", b"ter", b"2!"], b"is [redacted]!"),
        (["hunter2", "hunter2000"], [b"hunter2", b"000 hunter2"], b"[redacted] [redacted]"),
        (["xxhunter", "hunters"], [b"xxhunter", b"x"], b"[redacted]x"),
        (["hunter2"], [b"hunte"], b"hunte"),
        (["abc", ""], [b"abc abc"], b"abc abc"),
        (["first line\nsecond line\r\nx\n"], [b"second line, x, fir", b"st line"], b"[redacted], x, [redacted]"),
        (["  hunter2\n"], [b"is hunter2!"], b"is [redacted]!"),
        (["k" * 4096 + "v" * 5000], [b"<" + b"k" * 4096, b"v" * 5000 + b">"], b"<" + b"[redacted]" * 3 + b">"),
        (["redact", "hunter2"], [b"hunter2 redact"], b"[redacted] [redacted]"),
    ],
)
def test_secrets_are_replaced(secrets, parts, seen):
    assert redacted(secrets, parts) == seen


def test_only_what_may_be_a_secret_is_held_back():
    redactor = Redactor(["hunter2"])
    assert redactor.feed(b"a line\n") == b"a line\n"
    assert redactor.feed(b"to hunt") == b"to "
    assert redactor.feed(b"ing") == b"hunting"


def test_a_log_is_there_from_the_first_byte_and_for_its_owner_alone(tmp_path):
    path = tmp_path / "new" / "run.log"
    log = LogFile(path, limit=100)
    assert not path.parent.exists()
    log.write(b"one")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    log.write(b"two")
    assert path.read_bytes() == b"onetwo"
    assert log.close(keep=True) == path
    assert log.close(keep=False) is None
    assert not path.exists()


def test_a_log_that_others_could_read_is_closed_to_them(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("older and longer")
    path.chmod(0o644)
    log = LogFile(path, limit=100)
    log.write(b"new")
    log.close(keep=True)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)


@pytest.mark.promise("C8")
def test_a_full_log_keeps_its_beginning_and_its_end_and_says_what_is_left_out(tmp_path):
    log = LogFile(tmp_path / "run.log", limit=1000)
    printed = b"".join(b"line %04d\n" % number for number in range(1000))
    for begin in range(0, len(printed), 10):
        log.write(printed[begin : begin + 10])
        assert (tmp_path / "run.log").stat().st_size <= 1000
    log.close(keep=True)
    head, notice, tail = re.split(r"\n(\[.*\])\n", (tmp_path / "run.log").read_text())
    left_out = len(printed) - len(head) - len(tail)
    assert (head, tail) == (printed[:250].decode(), printed[-len(tail) :].decode())
    assert len(tail) >= 250
    assert notice == f"[… {left_out} bytes left out: a log has at most 1000 …]"
    assert log.problem == f"The log was cut: {left_out} bytes of its middle are left out."


def test_standard_error_is_marked_line_by_line_and_never_inside_a_line(tmp_path):
    log, marked = LogFile(tmp_path / "run.log", limit=100_000), MarkedLines()
    log.write(b"half a ")
    log.write_lines(marked.feed(b"no credit\nsecond "))
    log.write(b"line\n")
    log.write_lines(marked.feed(b"error\n"))
    log.write_lines(marked.feed(b"x" * 9000))
    log.write_lines(marked.flush())
    log.write_lines(marked.feed(b"no end"))
    log.write_lines(marked.flush())
    log.close(keep=True)
    assert (tmp_path / "run.log").read_text().split("\n") == [
        "half a ",
        "[stderr] no credit",
        "line",
        "[stderr] second error",
        "[stderr] " + "x" * 9000,
        "[stderr] no end",
        "",
    ]


def test_a_log_is_not_written_through_a_foreign_link(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "run.log").symlink_to(tmp_path / "precious")
    log = LogFile(tmp_path / "run.log", limit=100)
    log.write(b"gone")
    assert log.close(keep=True) is None
    assert (tmp_path / "precious").read_text() == "mine"
    assert log.problem.startswith("The log could not be written after 0 bytes: ")


def test_a_log_without_output_leaves_what_is_there_alone(tmp_path):
    (tmp_path / "run.log").write_text("older")
    assert LogFile(tmp_path / "run.log", limit=100).close(keep=False) is None
    assert (tmp_path / "run.log").read_text() == "older"
