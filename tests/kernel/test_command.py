"""Commands as real processes: their input, what they see, and how they end."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from tests.kernel.commanding import RUN, descriptors, python, sh
from wakeful.domains.command.result import CommandFailed, CommandResult
from wakeful.domains.command.spec import CommandSpec
from wakeful.errors import InvalidJob, SchedulerError

# What a payload may say


def test_a_payload_with_everything_is_understood():
    spec = CommandSpec.from_payload(
        {
            "argv": ["backup.sh", "--full"],
            "cwd": "/srv",
            "env": {"LEVEL": "3"},
            "pass_env": ["TOKEN"],
            "timeout_ms": 60_000,
            "output_limit": 1000,
            "success_codes": [0, 2],
            "stdin": "yes\n",
        }
    )
    assert spec.argv == ("backup.sh", "--full")
    assert (spec.cwd, spec.env, spec.pass_env, spec.stdin) == ("/srv", {"LEVEL": "3"}, ("TOKEN",), "yes\n")
    assert (spec.timeout_ms, spec.output_limit, spec.success_codes) == (60_000, 1000, (0, 2))


def test_argv_alone_is_enough_and_null_means_the_default():
    assert CommandSpec.from_payload({"argv": ["true"], "cwd": None, "timeout_ms": None}) == CommandSpec(("true",))
    assert CommandSpec(("true",)).output_limit == 64 * 1024


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        (None, "needs a payload such as"),
        (["true"], "needs a payload such as"),
        ({}, "needs argv"),
        ({"argv": []}, "non-empty list of strings"),
        ({"argv": "ls -l"}, "not one string: there is no shell"),
        ({"argv": ["ls", 3]}, r"argv\[1\] must be a string, not int"),
        ({"argv": [""]}, "begin with the name of a program"),
        ({"argv": ["ls", "a\0b"]}, r"argv\[1\] contains a NUL"),
        ({"argv": ["ls", "\ud800"]}, r"argv\[1\] contains half a surrogate pair"),
        ({"argv": ["ls", "x" * 200_000]}, r"argv\[1\] must have 0 to 131071 bytes, not 200000"),
        ({"argv": ["ls", *["x" * 100_000] * 6]}, "use stdin for more"),
        ({"argv": ["ls"], "timeout": 3}, "no 'timeout': did you mean 'timeout_ms'"),
        ({"argv": ["ls"], "enviroment": {}}, "no 'enviroment'"),
        ({"argv": ["ls"], "pass-env": []}, "did you mean 'pass_env'"),
        ({"argv": ["ls"], "xyzzy": 1}, "known are argv, cwd, env"),
        ({"argv": ["ls"], 5: 1}, "no 5: known are"),
        ({"argv": ["ls"], "cwd": ""}, "cwd must have 1 to"),
        ({"argv": ["ls"], "cwd": ["/"]}, "cwd must be a string"),
        ({"argv": ["ls"], "env": ["A=1"]}, "env must map"),
        ({"argv": ["ls"], "env": {"A=B": "1"}}, "cannot contain '='"),
        ({"argv": ["ls"], "env": {"": "1"}}, "env name must have 1"),
        ({"argv": ["ls"], "env": {"A": 1}}, r"env\['A'\] must be a string"),
        ({"argv": ["ls"], "env": {"A": "x\0"}}, r"env\['A'\] contains a NUL"),
        ({"argv": ["ls"], "pass_env": "HOME"}, "pass_env must be a list"),
        ({"argv": ["ls"], "timeout_ms": 0}, "timeout_ms must be a whole number from 1"),
        ({"argv": ["ls"], "timeout_ms": True}, "timeout_ms must be a whole number"),
        ({"argv": ["ls"], "output_limit": -1}, "output_limit must be a whole number from 0"),
        ({"argv": ["ls"], "output_limit": 10**9}, "output_limit must be a whole number"),
        ({"argv": ["ls"], "success_codes": []}, "non-empty list of exit codes"),
        ({"argv": ["ls"], "success_codes": [256]}, "from 0 to 255"),
        ({"argv": ["ls"], "stdin": "x" * 5_000_000}, "stdin must have 0 to"),
    ],
)
def test_a_wrong_payload_is_refused_in_one_sentence(payload, sentence):
    with pytest.raises(InvalidJob, match=sentence) as refusal:
        CommandSpec.from_payload(payload)
    assert "\n" not in str(refusal.value)


# What a command is given


@pytest.mark.promise("H17")
def test_the_arguments_reach_the_program_unchanged_because_there_is_no_shell(run):
    words = ["$HOME", "a b", "*", "; echo no", "`id`", "", "ü\n"]
    spec = CommandSpec((sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *words))
    assert json.loads(run(spec).output) == words


def test_a_command_sees_a_clean_environment_and_what_it_was_given(run, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    monkeypatch.setenv("WANTED", "yes")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("HOME", "/somewhere")
    monkeypatch.delenv("TZ", raising=False)
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    seen = json.loads(run(python(script, env={"LEVEL": "3"}, pass_env=("WANTED", "NOT_SET"))).output)
    # What the interpreter or the system's loader adds by itself is not ours.
    seen = {name: text for name, text in seen.items() if name not in ("LC_CTYPE", "__CF_USER_TEXT_ENCODING")}
    allowed = {"PATH", "HOME", "LANG", "USER", "LOGNAME", "SHELL", "TMPDIR"}
    assert {name for name in seen if not name.startswith("LC_")} - allowed == {"LEVEL", "WANTED", *RUN}
    assert (seen["LEVEL"], seen["WANTED"], seen["LC_TIME"]) == ("3", "yes", "C")
    assert seen["HOME"] == "/somewhere"


def test_the_run_it_belongs_to_cannot_be_overridden_by_the_job(run):
    assert run(sh('echo "$WAKEFUL_RUN_ID $HOME"', env={"WAKEFUL_RUN_ID": "fake", "HOME": "/h"})).output == "run_7 /h\n"


def test_the_program_is_looked_up_on_the_path_the_command_will_see(run, tmp_path):
    tool = tmp_path / "bin" / "my-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    assert run(CommandSpec(("my-tool",), env={"PATH": str(tool.parent)})).output == "found\n"


def test_a_program_with_a_slash_is_relative_to_its_folder(run, tmp_path):
    (tmp_path / "job.sh").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "job.sh").chmod(0o755)
    assert run(CommandSpec(("./job.sh",), cwd=str(tmp_path))).output == f"{tmp_path.resolve()}\n"


def test_a_tilde_in_the_folder_is_the_home_of_who_runs_it(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "repo").mkdir()
    assert run(CommandSpec(("pwd",), cwd="~/repo")).output == f"{(tmp_path / 'repo').resolve()}\n"


def test_without_stdin_there_is_nothing_to_read(run):
    assert run(CommandSpec(("cat",))).output == ""


def test_a_long_stdin_reaches_a_program_that_prints_before_it_reads(run):
    text = "line ü\n" * 100_000
    script = "import sys; print('x' * 500_000); print(len(sys.stdin.buffer.read()))"
    assert run(python(script, stdin=text)).output.endswith(f"\n{len(text.encode())}\n")


def test_a_program_that_ignores_its_stdin_is_no_error(run):
    assert run(CommandSpec(("true",), stdin="x" * 1_000_000)).error() is None


# How it ends


@pytest.mark.promise("H17")
def test_both_streams_are_kept_in_the_order_they_were_written(run, log_path):
    result = run(sh("for i in 1 2 3; do echo out $i; echo err $i >&2; done"))
    assert result.output == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
    assert (result.exit_code, result.error(), result.truncated, result.notes) == (0, None, False, ())
    assert result.output_bytes == len(result.output)


@pytest.mark.promise("C8")
@pytest.mark.parametrize(
    ("script", "code", "sentence"),
    [
        ("exit 3", 3, "exited with code 3"),
        ("echo one; echo 'disk is full' >&2; echo; exit 1", 1, "exited with code 1: disk is full"),
        ("printf 'a\\033[31m red\\t\\000 word'; exit 1", 1, "exited with code 1: a [31m red � word"),
        ("kill -KILL $$", -9, "killed by SIGKILL (out of memory?)"),
        ("echo bye; kill -SEGV $$", -11, "killed by SIGSEGV: bye"),
    ],
)
def test_a_failure_is_one_sentence_with_the_last_words(run, script, code, sentence):
    result = run(sh(script))
    assert (result.exit_code, result.error()) == (code, sentence)


def test_a_signal_without_a_name_is_given_by_number():
    assert CommandResult(-40, "", 0, truncated=False, log_file=None).error() == "killed by signal 40"


def test_long_last_words_are_cut(run):
    error = run(python("print('x' * 5000); raise SystemExit(1)")).error()
    assert error.endswith("xxx…")
    assert len(error) < 250


def test_exit_codes_the_job_calls_success_are_success(run):
    assert run(sh("exit 2", success_codes=(0, 2))).error() is None
    assert run(sh("exit 0", success_codes=(2,))).error() == "exited with code 0"


@pytest.mark.promise("C8")
@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (CommandSpec(("no-such-tool",), env={"PATH": "/bin:/usr/bin"}), r"'no-such-tool' was not found on PATH \(/bin"),
        (CommandSpec(("./missing",), cwd="/"), "'./missing' does not exist in '/'"),
        (CommandSpec(("/missing/tool",)), "'/missing/tool' does not exist$"),
        (CommandSpec(("true",), cwd="/no/such/folder"), "cwd '/no/such/folder' cannot be used: No such file"),
        (CommandSpec(("true",), cwd="/dev/null"), "cwd '/dev/null' cannot be used: Not a directory"),
        (CommandSpec(("/",)), "'/' may not be executed"),
        (
            CommandSpec(("true", "x" * 10_000_000), env={"PATH": "/bin:/usr/bin"}),
            "could not be started: Argument list too long",
        ),
        (CommandSpec(("true", "\ud800")), "could not be started: .*surrogates not allowed"),
    ],
)
def test_a_command_that_cannot_start_says_why(run, log_path, spec, sentence):
    before = descriptors()
    with pytest.raises(CommandFailed, match=sentence) as failure:
        run(spec)
    assert isinstance(failure.value, SchedulerError)
    assert descriptors() == before
    assert list(log_path.parent.iterdir()) == []


def test_a_program_that_is_nowhere_is_not_found_though_part_of_the_path_is_closed(run, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o000)
    with pytest.raises(CommandFailed, match="was not found on PATH"):
        run(CommandSpec(("no-such-tool",), env={"PATH": f"{tmp_path}/closed:/bin"}))


@pytest.mark.parametrize(
    ("text", "mode", "sentence"),
    [
        ("#!/bin/sh\n", 0o644, "may not be executed: .*chmod"),
        ("#!/no/such/shell\n", 0o755, "names an interpreter in its first line that does not exist"),
        ("echo hello\n", 0o755, "is not a program: a script needs a first line"),
    ],
)
def test_a_broken_script_says_what_is_broken(run, tmp_path, text, mode, sentence):
    (tmp_path / "job").write_text(text)
    (tmp_path / "job").chmod(mode)
    with pytest.raises(CommandFailed, match=sentence):
        run(CommandSpec(("./job",), cwd=str(tmp_path)))
    with pytest.raises(CommandFailed, match=sentence):
        run(CommandSpec(("job",), env={"PATH": str(tmp_path)}))


@pytest.mark.promise("C8")
def test_an_exit_code_that_other_code_took_is_an_error_not_a_success(run):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(CommandFailed, match="SIGCHLD must not be ignored"):
            run(CommandSpec(("true",)))
    finally:
        signal.signal(signal.SIGCHLD, before)
