"""The box: hostile programs are survived, and what they had to be contained by is said."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from ramify.errors import InvalidValue
from ramify.tasks.sandbox import CONTAINMENTS, Box, containment

WALLED = pytest.mark.skipif(not containment(), reason="bubblewrap is not installed")
BOX = Box(wall=20.0, cpu=5)


@WALLED
def test_a_program_runs_and_says_what_contained_it() -> None:
    ran = BOX("import sys; print(sys.stdin.read().upper())", "hello")
    assert (ran.status, ran.code, ran.output, ran.errors) == ("ok", 0, "HELLO\n", "")
    assert ran.containment == CONTAINMENTS[0]


@WALLED
def test_a_failing_program_fails() -> None:
    ran = BOX("raise SystemExit(3)")
    assert (ran.status, ran.code) == ("failed", 3)
    assert "ZeroDivisionError" in BOX("1/0").errors


@WALLED
def test_a_fork_bomb_is_bounded() -> None:
    counted = """
import os, time
n = 0
try:
    while n < 500:
        if os.fork() == 0:
            time.sleep(2); os._exit(0)
        n += 1
except OSError:
    pass
print(n)
"""
    assert int(BOX(counted).output) < 16
    ran = Box(wall=2.0)("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")
    assert ran.status == "timeout"
    assert ran.seconds < 15  # two, and a busy machine


@WALLED
def test_nothing_of_a_fork_bomb_is_left() -> None:
    Box(wall=1.0)("import os\nfor _ in range(10):\n    os.fork()\nimport time; time.sleep(60)  # left-over-marker")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _running("/box/program.py"):
        time.sleep(0.1)
    assert not _running("/box/program.py")


def _running(words: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            found += [command] if words in command and "launch.py" not in command else []
    return found


@WALLED
def test_a_memory_bomb_gets_an_error() -> None:
    ran = Box(memory=256)("x = []\nwhile True: x.append(bytearray(10**7))")
    assert ran.status == "failed"
    assert "MemoryError" in ran.errors


@WALLED
def test_a_flood_of_files_fills_the_box_and_nothing_else() -> None:
    many = Box(disk=4)("i = 0\nwhile True:\n    open(f'/tmp/{i}', 'wb').write(b'x' * 10**6)\n    i += 1")
    assert "No space left" in many.errors
    large = Box(disk=4)("f = open('/tmp/a', 'wb', 0)\nwhile True: f.write(b'x' * 10**6)")
    assert large.status == "failed"
    empty = Box(disk=4, cpu=1, wall=4.0)("i = 0\nwhile True:\n    open(f'/tmp/{i}', 'w').close()\n    i += 1")
    assert empty.status in ("failed", "timeout")


@WALLED
def test_long_output_is_cut_and_ends_the_program() -> None:
    ran = Box(output=10_000)("while True: print('x' * 1000)")
    assert ran.status == "output"
    assert len(ran.output) == 10_000
    quiet = Box(output=10_000)("import sys\nwhile True: sys.stderr.write('y' * 1000)")
    assert quiet.status == "output"


@WALLED
def test_the_environment_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "hunter2")
    program = """
import os
print(dict(os.environ))
for pid in os.listdir('/proc'):
    if pid.isdigit():
        try: print(open(f'/proc/{pid}/environ').read())
        except OSError as error: print(error)
"""
    ran = BOX(program)
    assert ran.ok
    assert "hunter2" not in ran.output
    assert "SECRET_OF_THE_HOST" not in ran.output


@WALLED
def test_files_of_the_host_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2")
    for path in (tmp_path / "secret", Path("/etc/passwd"), Path.home() / ".bashrc", Path(__file__)):
        assert BOX(f"open({str(path)!r})").status == "failed"
    assert "Read-only" in BOX("open('/box/program.py', 'w')").errors or "denied" in BOX("open('/box/x', 'w')").errors
    assert BOX("open('/usr/lib/x', 'w')").status == "failed"


@WALLED
def test_there_is_no_network() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        ran = BOX(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
    assert ran.status == "failed"
    assert "Error" in ran.errors


@WALLED
def test_rights_cannot_be_taken_back_and_other_processes_not_be_reached() -> None:
    ran = BOX("import os\nos.setuid(0)\nprint(os.getuid())") if os.geteuid() == 0 else None
    assert ran is None or ran.status == "failed"
    assert os.getpid()  # still here after it tried to end everything
    BOX("import os; os.kill(-1, 9)")
    assert BOX("import ctypes; print(ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None))").output == "-1\n"


@WALLED
def test_time_is_limited_by_clock_and_by_work() -> None:
    assert Box(wall=1.0)("import time; time.sleep(60)").status == "timeout"
    assert Box(cpu=1, wall=60.0)("while True: pass").status == "timeout"
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nimport time; time.sleep(60)"
    assert Box(wall=1.0)(stubborn).status == "timeout"


@WALLED
def test_a_program_that_closes_its_output_and_stays_is_ended() -> None:
    ran = Box(wall=1.0)("import os, time\nos.close(1); os.close(2); time.sleep(60)")
    assert ran.status == "timeout"


@WALLED
def test_input_that_nobody_reads_does_not_hang() -> None:
    assert BOX("print('done')", "x" * 10_000_000).output == "done\n"


def test_without_walls_it_refuses_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramify.tasks.sandbox.box.containment", lambda: "")
    with pytest.raises(InvalidValue, match=r"apt install bubblewrap, or Box\(unwalled=True\)"):
        Box()("print(1)")
    ran = Box(unwalled=True)("print(1)")
    assert (ran.output, ran.containment) == ("1\n", "limits only")
    assert "MemoryError" in Box(unwalled=True, memory=256)("x = bytearray(10**9)").errors
    assert Box(unwalled=True, wall=1.0)("import time; time.sleep(60)").status == "timeout"


def test_fields_are_checked() -> None:
    with pytest.raises(InvalidValue, match=r"Box\.memory = 0"):
        Box(memory=0)
