"""A box for programs that nobody trusts: no network, no files but its own, limits on everything that can be used up.

bubblewrap gives the walls: namespaces of its own for network, processes, mounts and hostname; a read-only system, an
empty home of a fixed size, no environment. Resource limits hold inside: CPU, memory, file size, processes, open files.
The wall clock and the length of the output are watched from outside, and ending the box ends all in it.
Without bubblewrap a program is refused, unless the box is told that limits alone will do; the result says which it had.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ramify.describe import method
from ramify.errors import InvalidValue, is_whole, require

__all__ = ["CONTAINMENTS", "Box", "Ran", "containment"]

CONTAINMENTS = ("bubblewrap and limits", "limits only")
LAUNCH = Path(__file__).with_name("launch.py")
USERS = 1_500_000_000  # ids from here belong to nobody; each run gets its own, so that its processes are counted alone
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a program. ``status``: ok | failed | timeout | output (too much of it)."""

    status: str
    code: int  # exit status; -n where signal n ended it
    output: str  # standard output, up to the limit
    errors: str
    seconds: float
    containment: str

    @property
    def ok(self) -> bool:
        """Whether the program ended by itself and without an error."""
        return self.status == "ok"


@method
class Box:
    """Runs Python programs within limits.

    >>> Box()("print(6 * 7)").output if containment() else "42\\n"
    '42\\n'
    """

    cpu: int = 5  # seconds
    wall: float = 10.0  # seconds
    memory: int = 512  # MiB of address space, by process
    disk: int = 16  # MiB in the box, and by file
    processes: int = 16
    files: int = 64
    output: int = 65_536  # bytes of standard output, and of errors
    unwalled: bool = False  # whether limits alone will do

    def __post_init__(self) -> None:
        for name in ("cpu", "memory", "disk", "processes", "files", "output"):
            require(is_whole(getattr(self, name), 1), f"Box.{name}", getattr(self, name), "use an integer >= 1")
        require(self.wall > 0, "Box.wall", self.wall, "use a number of seconds > 0")

    def __call__(self, program: str, stdin: str = "") -> Ran:
        """Run a program to its end, or to the box's."""
        walls = containment()
        if not walls and not self.unwalled:
            raise InvalidValue(
                "bubblewrap is not installed or does not work here, and programs of a model are not run without it: "
                "apt install bubblewrap, or Box(unwalled=True) where the machine itself may be lost"
            )
        with tempfile.TemporaryDirectory(prefix="ramify-box-") as folder:
            os.chmod(folder, 0o755)
            Path(folder, "program.py").write_text(program, errors="surrogatepass")
            shutil.copyfile(LAUNCH, Path(folder, "launch.py"))
            command = self.walled(folder) if walls else self.bare(folder)
            return self.watched(command, folder, stdin, CONTAINMENTS[0 if walls else 1])

    # --------------------------------------------------------------------------------------------------------- commands

    def order(self, python: str, program: str, user: int) -> str:
        limits = {
            "CPU": self.cpu,
            "AS": self.memory << 20,
            "FSIZE": self.disk << 20,
            "NPROC": self.processes,
            "NOFILE": self.files,
            "CORE": 0,
            "MEMLOCK": 0,
            "MSGQUEUE": 0,
        }
        command = [python, "-I", "-S", "-B", program]
        return json.dumps({"limits": limits, "user": user, "command": command, "environment": BARE})

    def walled(self, folder: str) -> list[str]:
        """bubblewrap's command. Root keeps just the right to become nobody, which its processes are counted by."""
        root = os.geteuid() == 0
        own = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if root else []
        order = self.order("/python/bin/" + _python().name, "/box/program.py", _nobody() if root else 0)
        return [
            _bubblewrap(),
            *(own if root else ["--unshare-all"]),
            *("--die-with-parent", "--new-session", "--clearenv", "--hostname", "box"),
            *rights,
            *_system(),
            *("--ro-bind", str(_python().parent.parent), "/python"),
            *("--ro-bind", folder, "/box"),
            *("--proc", "/proc", "--dev", "/dev"),
            *("--perms", "1777", "--size", str(self.disk << 20), "--tmpfs", "/tmp"),
            *("--chdir", "/tmp", "--"),
            *("/python/bin/" + _python().name, "-I", "-S", "-B", "/box/launch.py", order),
        ]

    def bare(self, folder: str) -> list[str]:
        """The launcher alone: limits without walls."""
        order = self.order(str(_python()), f"{folder}/program.py", 0)
        return [str(_python()), "-I", "-S", "-B", f"{folder}/launch.py", order]

    # --------------------------------------------------------------------------------------------------------- watching

    def watched(self, command: list[str], folder: str, stdin: str, contained: str) -> Ran:
        """Run a command, reading what it says up to the limit, until it ends or has to."""
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin"},  # bubblewrap's own environment can be read from inside: it has nothing in it
            start_new_session=True,
        )
        try:
            said, status = self.collected(process, stdin.encode(errors="surrogatepass"), start + self.wall)
        finally:
            _ended(process)
        code = process.returncode
        if status == "ok" and code:
            status = "timeout" if code in (-signal.SIGXCPU, 128 + signal.SIGXCPU) else "failed"
        text = [each.decode(errors="replace") for each in said]
        return Ran(status, code, text[0], text[1], time.monotonic() - start, contained)

    def collected(self, process: subprocess.Popen[bytes], stdin: bytes, deadline: float) -> tuple[list[bytes], str]:
        """Standard output and errors, and why reading stopped: ok | timeout | output."""
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said = {process.stdout: b"", process.stderr: b""}
        with selectors.DefaultSelector() as selector:
            for pipe in said:
                selector.register(pipe, selectors.EVENT_READ)
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
            status = "ok"
            while any(key.fileobj in said for key in selector.get_map().values()) and status == "ok":
                left = deadline - time.monotonic()
                ready = selector.select(max(0.0, left)) if left > 0 else []
                if not ready:
                    status = "timeout"
                for key, _ in ready:
                    if key.fileobj is process.stdin:
                        stdin = _fed(process.stdin, stdin)
                        if not stdin:
                            selector.unregister(process.stdin)
                            process.stdin.close()
                        continue
                    chunk = os.read(key.fd, 65_536)
                    if not chunk:
                        selector.unregister(key.fileobj)
                        continue
                    said[key.fileobj] += chunk  # type: ignore[index]
                    if len(said[key.fileobj]) > self.output:  # type: ignore[index]
                        status = "output"
        if status == "ok":
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                status = "timeout"
        return [each[: self.output] for each in said.values()], status


def _fed(pipe: object, data: bytes) -> bytes:
    """What is left to write after writing what fits; nothing where nobody reads any more."""
    try:
        return data[os.write(pipe.fileno(), data[:65_536]) :]  # type: ignore[attr-defined]
    except BlockingIOError:
        return data
    except OSError:
        return b""


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End the whole session. The end of bubblewrap is the end of its process namespace, whatever is in it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None and not pipe.closed:
            with contextlib.suppress(OSError):
                pipe.close()
    process.wait()


# ---------------------------------------------------------------------------------------------------------- the machine


@lru_cache(maxsize=1)
def containment() -> str:
    """The walls there are: "bubblewrap", or nothing where it is not installed or this machine does not let it work."""
    found = shutil.which("bwrap")
    if found is None:
        return ""
    trial = [found, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--", "/bin/true"]
    try:
        done = subprocess.run(trial, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "bubblewrap" if done.returncode == 0 else ""


def _bubblewrap() -> str:
    found = shutil.which("bwrap")
    assert found is not None
    return found


@lru_cache(maxsize=1)
def _python() -> Path:
    """The interpreter that this one is based on, outside any virtual environment: standard library only."""
    base = Path(sys.base_prefix).resolve()
    names = (f"python{sys.version_info.major}.{sys.version_info.minor}", "python3")
    found = next((base / "bin" / name for name in names if (base / "bin" / name).exists()), None)
    return found or Path(sys.executable).resolve()


def _system() -> list[str]:
    """The parts of the system that an interpreter needs, read-only: its libraries, and the links that lead to them."""
    # bubblewrap makes the folders on the way for its own user alone.
    found = [part for name in ("/usr", "/usr/local", "/etc") for part in ("--perms", "0755", "--dir", name)]
    for name in ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"):
        if Path(name).exists():
            found += ["--ro-bind", name, name]
    for name in ("/lib", "/lib64", "/lib32"):
        path = Path(name)
        if path.is_symlink():
            found += ["--symlink", os.readlink(path), name]
        elif path.exists():
            found += ["--ro-bind", name, name]
    return found


def _nobody() -> int:
    """A user id that nobody has."""
    return USERS + (os.getpid() * 1009 + time.monotonic_ns() // 1000) % 400_000_000
