"""Runs Autobahn's suite of WebSocket cases against a server and a client of ours, and judges both.

    python3 run.py --wstest PROGRAM --reports FOLDER [--server COMMAND] [--client COMMAND]
                   [--quick | --cases CASE...]

The server's first line of output must name the address that it listens on; SIGTERM ends it. The
client gets the address of Autobahn's server and the number of the case to begin with, and writes a
line before each case. The suite reports success whatever happens, so the exit status comes from its
reports: 1 unless every case was run and passed on both sides.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import queue
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

AGENT = "towpath"
# Where Autobahn's server listens: in a network namespace of its own, which nobody else is in.
ADDRESS = ("127.0.0.1", 9001)
# The suite's own limit for one case is 480 s.
CASE_SECONDS = 600
START_SECONDS = 60

ALL = (["*"], 517)
# Everything but most of compression. With a `*` a case is the beginning of others, so without.
QUICK = (
    [f"{section}.*" for section in (1, 2, 3, 4, 5, 6, 7, 9, 10)]
    + [f"12.{kind}.{size}" for kind in range(1, 6) for size in range(1, 5)]
    + [f"13.{kind}.{size}" for kind in range(1, 8) for size in range(1, 5)],
    349,
)

# Invalid UTF-8 in the middle of a message, which need not be noticed before the message is whole.
NON_STRICT = {"6.4.1", "6.4.2", "6.4.3", "6.4.4"}


class Failure(Exception):
    """What ends a run early."""


class Program:
    """A program whose output is read line by line, each within a time."""

    def __init__(self, command, log):
        self.name = os.path.basename(command[0])
        self.log = log
        self.lines = queue.SimpleQueue()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with open(self.log, "a", encoding="utf-8") as log:
            for line in self.process.stdout:
                log.write(line)
                log.flush()
                self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self, seconds):
        """The next line; None at the end."""
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            raise Failure(f"{self.name} says nothing for {seconds} s; see {self.log}") from None

    def end(self, number=None):
        """Waits for its end, after a signal if there is one, and returns its status."""
        if number:
            self.process.send_signal(number)
        try:
            return self.process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} does not end; see {self.log}") from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Run:
    """One side's run of the suite."""

    def __init__(self, side, options, cases):
        self.wstest = options.wstest
        self.command = shlex.split(getattr(options, side))
        self.folder = os.path.join(os.path.abspath(options.reports), side)
        self.cases = cases
        self.programs = []
        self.complaints = []
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def start(self, *command):
        log = os.path.join(self.folder, os.path.basename(command[0]) + ".log")
        program = Program(command, log)
        self.programs.append(program)
        return program

    def autobahn(self, mode, **more):
        path = os.path.join(self.folder, "spec.json")
        specification = {
            "options": {"failByDrop": False},
            "outdir": self.folder,
            "cases": self.cases,
            "exclude-cases": [],
            "exclude-agent-cases": {},
            **more,
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(specification, file)
        return self.start(self.wstest, "--mode", mode, "--spec", path, "--webport", "0")

    def stop(self):
        for program in self.programs:
            program.kill()

    def server(self):
        """Autobahn as client of our server."""
        server = self.start(*self.command)
        line = server.line(START_SECONDS)
        address = re.search(r"127\.0\.0\.1:\d+", line or "")
        if not address:
            raise Failure(f"{server.name} names no address: {line}")
        autobahn = self.autobahn(
            "fuzzingclient", servers=[{"agent": AGENT, "url": f"ws://{address[0]}"}]
        )
        while autobahn.line(CASE_SECONDS) is not None:
            pass
        autobahn.end()
        if server.process.poll() is not None:
            self.complaints.append(f"{server.name} died: status {server.process.returncode}")
        elif status := server.end(signal.SIGTERM):
            self.complaints.append(f"{server.name} ended with status {status}")

    def client(self):
        """Autobahn as server of our client, inside the namespace."""
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        autobahn = self.autobahn("fuzzingserver", url=f"ws://{ADDRESS[0]}:{ADDRESS[1]}")
        self.wait_for(autobahn)
        first = 1
        # One that dies is started again behind the case that it died in: one bug hides no other.
        while True:
            client = self.start(*self.command, f"{ADDRESS[0]}:{ADDRESS[1]}", str(first))
            last, said = None, None
            while (line := client.line(CASE_SECONDS)) is not None:
                said = line
                if match := re.match(r"case (\d+)$", line):
                    last = int(match[1])
            status = client.end()
            if status == 0:
                return
            self.complaints.append(f"{client.name} died in case {last}, status {status}: {said}")
            if last is None:
                return
            first = last + 1

    @staticmethod
    def wait_for(autobahn):
        """Until it takes connections."""
        end = time.monotonic() + START_SECONDS
        while autobahn.process.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection(ADDRESS, timeout=1).close()
                return
            except OSError:
                try:
                    autobahn.process.wait(timeout=0.1)
                except subprocess.TimeoutExpired:
                    pass
        raise Failure(f"Autobahn's server does not listen; see {autobahn.log}")


def key(case):
    return [int(number) for number in case.split(".")]


def passes(case, row):
    behavior, close = row["behavior"], row["behaviorClose"]
    is_right = behavior in ("OK", "INFORMATIONAL") or (
        behavior == "NON-STRICT" and case in NON_STRICT
    )
    return is_right and close in ("OK", "INFORMATIONAL")


def table(rows):
    """Behaviour and close by section, and a sum."""
    groups = (("OK",), ("NON-STRICT",), ("INFORMATIONAL",))
    print(f"{'':9}{'':>6} | {'behaviour':<31} | {'close':<20} |")
    print(
        f"{'section':9}{'cases':>6} | {'OK':>5}{'NON-STRICT':>12}{'INFO':>6}{'other':>8}"
        f" | {'OK':>5}{'INFO':>7}{'other':>8} | {'seconds':>8}"
    )
    sections = sorted({key(case)[0] for case in rows})
    for section in [*sections, None]:
        part = [row for case, row in rows.items() if section in (key(case)[0], None)]
        behavior = collections.Counter(row["behavior"] for row in part)
        close = collections.Counter(row["behaviorClose"] for row in part)
        ok, non_strict, info = (sum(behavior[name] for name in group) for group in groups)
        others = len(part) - ok - non_strict - info
        closes = len(part) - close["OK"] - close["INFORMATIONAL"]
        seconds = sum(row["duration"] for row in part) / 1000
        print(
            f"{section or 'all':<9}{len(part):>6} | {ok:>5}{non_strict:>12}{info:>6}{others:>8}"
            f" | {close['OK']:>5}{close['INFORMATIONAL']:>7}{closes:>8} | {seconds:>8.1f}"
        )


def judge(run, expected):
    """Prints what the report says, and returns what is wrong with it."""
    path = os.path.join(run.folder, "index.json")
    if not os.path.exists(path):
        return [*run.complaints, "Autobahn wrote no report"]
    with open(path, encoding="utf-8") as file:
        rows = json.load(file).get(AGENT, {})
    table(rows)
    complaints = list(run.complaints)
    for case in sorted(rows, key=key):
        row = rows[case]
        if (row["behavior"], row["behaviorClose"]) == ("OK", "OK"):
            continue
        line = f"{case}: {row['behavior']}, close {row['behaviorClose']} ({row['remoteCloseCode']})"
        if passes(case, row):
            print(line)
            continue
        with open(os.path.join(run.folder, row["reportfile"]), encoding="utf-8") as file:
            report = json.load(file)
        complaints.append(f"{line}: {report['result']}; {report['resultClose']}")
    if expected is not None and len(rows) != expected:
        complaints.append(f"{len(rows)} cases instead of {expected}")
    return complaints


def inside(options, cases):
    """Runs the client's side in this namespace, and leaves what it has to complain of in a file."""
    run = Run("client", options, cases)
    attempt(run, run.client)
    with open(os.path.join(run.folder, "complaints.json"), "w", encoding="utf-8") as file:
        json.dump(run.complaints, file)


# A namespace of our own: an ordinary user becomes root of it, where the host allows that.
NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net", "--"]


def outside(options, cases):
    """Runs the client's side in a namespace of its own: Autobahn's server listens on all addresses."""
    run = Run("client", options, cases)
    again = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--inside"]
    subprocess.run([*NAMESPACE, *again], check=False)
    try:
        with open(os.path.join(run.folder, "complaints.json"), encoding="utf-8") as file:
            run.complaints += json.load(file)
    except OSError:
        run.complaints.append("Autobahn's server did not run in a network namespace")
    return run


def attempt(run, side):
    try:
        side()
    except Failure as failure:
        run.complaints.append(str(failure))
    finally:
        run.stop()


def play(side, options, cases):
    if side == "client":
        return outside(options, cases)
    run = Run(side, options, cases)
    attempt(run, run.server)
    return run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wstest", required=True)
    parser.add_argument("--reports", required=True)
    parser.add_argument("--server")
    parser.add_argument("--client")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", nargs="+")
    parser.add_argument("--inside", action="store_true")
    options = parser.parse_args()
    cases, expected = QUICK if options.quick else ALL
    if options.cases:
        cases = options.cases
        expected = None if any("*" in case for case in cases) else len(cases)
    if options.inside:
        inside(options, cases)
        return 0

    failed = False
    sides = [side for side in ("server", "client") if getattr(options, side)]
    if "client" in sides and subprocess.run([*NAMESPACE, "true"], check=False).returncode:
        print("skipped: Autobahn and our client, which need a network namespace")
        failed = os.environ.get("CI") == "true"
        sides.remove("client")
    # Both at a time: each side takes one processor.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        started = time.monotonic()
        runs = {side: pool.submit(play, side, options, cases) for side in sides}
        for side in sides:
            run = runs[side].result()
            print(f"\nAutobahn and our {side}: {getattr(options, side)}", flush=True)
            complaints = judge(run, expected)
            for complaint in complaints:
                print(f"FAILED: {complaint}")
            seconds = time.monotonic() - started
            print(f"{len(complaints)} failures in {seconds:.0f} s; reports: {run.folder}", flush=True)
            failed = failed or bool(complaints)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
