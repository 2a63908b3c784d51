# SPDX-License-Identifier: Apache-2.0
"""The format of docs/walkthroughs: a page read into steps, and expected output compared with real output.
docs/walkthroughs/README.md says what each kind of block means."""
import dataclasses
import pathlib
import re

MACHINE = re.compile(r"^Machine: `([a-z0-9-]+)`")
CLUSTER = re.compile(r"^Cluster: `([a-z0-9-]+)`")
HOST = re.compile(r"^Host: `([a-z0-9./-]+)`")
SCHEDULER = re.compile(r"^Scheduler: `([a-z0-9./-]+)`")
COUNT = re.compile(r"^Count: (\d+) commands run, (\d+) compared, (\d+) listed with a reason\.$")
NOT_RUN = "## Not run"
HERE_DOCUMENT = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")


class BadPage(Exception):
    """The page breaks its own format; the message begins with file and line."""


@dataclasses.dataclass
class Step:
    """A machine to stand on, or commands to run there."""
    line: int
    machine: str = ""
    script: str = ""
    fails: bool = False
    expected: str | None = None

    def commands(self) -> list[str]:
        return commands_of(self.script)


@dataclasses.dataclass(frozen=True)
class Count:
    run: int = 0
    compared: int = 0
    listed: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.run + other.run, self.compared + other.compared, self.listed + other.listed)

    def __str__(self) -> str:
        return f"{self.run} commands run, {self.compared} compared, {self.listed} listed with a reason"


@dataclasses.dataclass
class NotRun:
    """An entry of the list under "Not run": commands with one reason."""
    commands: list[str]
    lines: list[str]  # as the page has them


@dataclasses.dataclass
class LaneBlock:
    """Commands that another test runs, and compares with what follows them; or, with a file name behind NAME, lines of a file that it uses."""
    name: str  # of the test: tests/e2e/NAME_lane or tests/vm/checks/NAME.sh
    steps: list[Step]

    def commands(self) -> list[str]:
        return [command for step in self.steps for command in step.commands()]


@dataclasses.dataclass
class Page:
    path: pathlib.Path
    steps: list[Step]
    not_run: list[NotRun]
    said: Count  # what the page says of itself
    cluster: str = ""  # the machine below the cluster that the page is about; "": it is about machines alone
    host: str = ""  # the description of the virtual machine host that the page is about
    scheduler: str = ""  # the configuration of its kube-scheduler; "": none
    lanes: list[LaneBlock] = dataclasses.field(default_factory=list)

    def count(self) -> Count:
        return Count(sum(len(s.commands()) for s in self.steps), sum(s.expected is not None for s in self.steps),
                     sum(len(entry.commands) for entry in self.not_run))

    def run(self) -> list[str]:
        """Every command that walking.walk runs."""
        return [command for step in self.steps for command in step.commands()]

    def run_by_lanes(self) -> list[str]:
        return [command for block in self.lanes for command in block.commands()]


def commands_of(script: str) -> list[str]:
    """One for each line that begins a command: not comments, indented lines or here-documents. Continuations belong to their command."""
    commands, end, continued = [], None, False
    for line in script.splitlines():
        if end is not None:
            end = None if line == end else end
            continue
        if continued:
            commands[-1] += line.removesuffix("\\")
        elif line and not line[0].isspace() and line[0] != "#":
            commands.append(line.removesuffix("\\"))
        continued = line.endswith("\\") and bool(commands)
        found = HERE_DOCUMENT.search(line)
        end = found.group(1) if found else None
    return commands


def matches(expected: str, actual: str) -> bool:
    """Line by line; `...` is any text in a line, and alone on a line any number of lines."""
    def plain(text: str) -> list[str]:
        return [line.rstrip() for line in text.strip("\n").splitlines()]

    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in plain(expected))
    return re.fullmatch(pattern, "".join(line + "\n" for line in plain(actual))) is not None


def lane_steps(first_line: int, text: list[str]) -> list[Step]:
    """Each command follows `$ `; a line that begins with `> ` continues it. What it prints follows; `...` is anything, as in other blocks."""
    steps: list[Step] = []
    for number, line in enumerate(text, first_line):
        if line.startswith("$ "):
            steps.append(Step(number, script=line[2:] + "\n", expected=""))
        elif line.startswith("> ") and steps and not steps[-1].expected:
            steps[-1].script += line[2:] + "\n"
        elif steps:
            steps[-1].expected += line + "\n"
    return steps


class Reader:
    """`strict`: a walk-through, which has a count and only the kinds of blocks below. Other pages are read for those."""

    def __init__(self, path: pathlib.Path, strict: bool = True) -> None:
        self.strict, self.lanes = strict, []
        self.path, self.lines, self.at = path, path.read_text().splitlines(), 0
        self.steps: list[Step] = []
        self.not_run: list[NotRun] = []
        self.said, self.in_list, self.cluster, self.host, self.scheduler = None, False, "", "", ""

    def error(self, text: str) -> BadPage:
        return BadPage(f"{self.path}:{self.at}: {text}")

    def read(self) -> Page:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if line.startswith("```"):
                self.block(line[3:].strip())
            else:
                self.sentence(line)
        if self.said is None and self.strict:
            raise self.error("the line `Count: N commands run, M compared, K listed with a reason.` is missing")
        if bool(self.cluster) + bool(self.host) + any(step.machine for step in self.steps) > 1:
            raise self.error("a page is about machines, about a cluster or about a virtual machine host")
        return Page(self.path, self.steps, self.not_run, self.said or Count(), self.cluster, self.host, self.scheduler, self.lanes)

    def sentence(self, line: str) -> None:
        if line.startswith("#"):
            self.in_list = line == NOT_RUN
        elif found := MACHINE.match(line):
            self.steps.append(Step(self.at, machine=found.group(1)))
        elif found := CLUSTER.match(line):
            self.cluster = found.group(1)
        elif found := HOST.match(line):
            self.host = found.group(1)
        elif found := SCHEDULER.match(line):
            self.scheduler = found.group(1)
        elif found := COUNT.match(line):
            self.said = Count(*(int(number) for number in found.groups()))
        elif self.in_list and line.startswith("- "):
            if not re.match(r"- `[^`]+`(, `[^`]+`)*: .", line):
                raise self.error("an entry of the list is `COMMAND`: reason")
            self.not_run.append(NotRun(line.removeprefix("- `").split("`: ")[0].split("`, `"), [line]))
        elif self.in_list and line.startswith("  ") and self.not_run:
            self.not_run[-1].lines.append(line)

    def block(self, kind: str) -> None:
        begin, text = self.at, []
        while self.at < len(self.lines) and self.lines[self.at] != "```":
            text.append(self.lines[self.at])
            self.at += 1
        if self.at == len(self.lines):
            raise self.error("a block without its end")
        self.at += 1
        body = "".join(line + "\n" for line in text)
        if kind in ("sh run", "sh run fails"):
            self.steps.append(Step(begin + 1, script=body, fails=kind.endswith("fails")))
        elif kind == "output":
            if not self.steps or not self.steps[-1].script or self.steps[-1].expected is not None:
                raise self.error("output without a command")
            self.steps[-1].expected = body
        elif kind.startswith("lane "):
            name, _, file = kind.removeprefix("lane ").partition(" ")
            self.lanes.append(LaneBlock(name, [Step(begin + 1, script=body)] if file else lane_steps(begin + 1, text)))
        elif kind not in ("seed", "text") and self.strict:
            raise self.error(f"a block of kind {kind!r}: there are seed, sh run, sh run fails, output, lane NAME [FILE] and text")


def read_page(path: pathlib.Path, strict: bool = True) -> Page:
    return Reader(path, strict).read()


def lane_of(page: Page, name: str) -> Page:
    """The commands of a page that the test NAME runs, as a page of their own."""
    steps = [step for block in page.lanes if block.name == name for step in block.steps]
    part = dataclasses.replace(page, steps=steps, not_run=[], lanes=[])
    return dataclasses.replace(part, said=part.count())
