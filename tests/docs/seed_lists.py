# SPDX-License-Identifier: Apache-2.0
"""What the notes contain (seed_problems.txt, seed_commands.txt), and what docs/walkthroughs and its README say about it."""
import collections
import dataclasses
import functools
import pathlib
import re

from walkthrough import Page, read_page

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "docs/walkthroughs"
README = FOLDER / "README.md"
BEGIN, END = "<!-- not run: tools/update_not_run writes this list from the pages -->", "<!-- end of not run -->"
LINK = re.compile(r"\[[^]]+\]\(([^)\s]+)\)")


@dataclasses.dataclass(frozen=True)
class Problem:
    seed: str
    text: str
    words: tuple[str, ...]  # what the answer has


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the README's table of problems."""
    seed: str
    text: str
    answers: tuple[str, ...]  # links: page#heading


def entries(path: pathlib.Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and line[0] != "#"]


def problems() -> list[Problem]:
    split = [line.split(" | ") for line in entries(HERE / "seed_problems.txt")]
    return [Problem(seed, text, tuple(words.split("; "))) for seed, text, words in split]


def commands() -> list[tuple[str, str]]:
    """Each command with the number of its notes."""
    return [tuple(line.split(" ", 1)) for line in entries(HERE / "seed_commands.txt")]


def pages() -> list[Page]:
    return [read_page(path) for path in sorted(FOLDER.glob("[0-9]*.md"))]


def seed_of(page: Page) -> str:
    return page.path.name[:3]


def rows(readme: str) -> list[Row]:
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in readme.splitlines() if re.match(r"\| \d{3} \| ", line)]
    return [Row(seed, text, tuple(LINK.findall(answer))) for seed, text, answer in cells]


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@functools.cache
def sections(page: pathlib.Path) -> dict[str, str]:
    """The text below each heading of a page, by its anchor, with the sections inside it."""
    found, open_ones, in_code = {}, [], False
    for line in page.read_text().splitlines():
        in_code ^= line.startswith("```")
        heading = None if in_code else re.match(r"(#+) (.*)", line)
        if heading:
            level = len(heading[1])
            open_ones = [(other, anchor) for other, anchor in open_ones if other < level] + [(level, slug(heading[2]))]
            found[slug(heading[2])] = ""
        for _, anchor in open_ones:
            found[anchor] += line + "\n"
    return found


def target(page: pathlib.Path, link: str) -> tuple[pathlib.Path, str]:
    """The file and the anchor that a link on this page leads to; "": no anchor."""
    path, _, anchor = link.partition("#")
    return (page.parent / path).resolve() if path else page, anchor


@functools.cache
def plain(text: str) -> str:
    return " ".join(text.replace("`", "").split()).lower()


def unanswered(readme: str, known: list[Problem]) -> list[str]:
    """Problems without a row, rows without a problem, and answers that are not where their row says."""
    wrong, answers = [], {(row.seed, row.text): row.answers for row in rows(readme)}
    wrong += [f"not in seed_problems.txt: {seed} {text}" for seed, text in answers.keys() - {(one.seed, one.text) for one in known}]
    for problem in known:
        said = ""
        for link in answers.get((problem.seed, problem.text), ()):
            path, anchor = target(README, link)
            said += sections(path).get(anchor, "") if path.is_file() else ""
        missing = [word for word in problem.words if plain(word) not in plain(said)]
        if not said or missing:
            wrong.append(f"{problem.seed} {problem.text}: " + (f"the answer has not: {missing}" if said else "no answer"))
    return wrong


def lists(entry: str, command: str) -> bool:
    """Whether an entry of a list stands for a command; `...` at its end is any rest."""
    return command.startswith(entry.removesuffix("...")) if entry.endswith("...") else command == entry


def as_typed(command: str) -> str:
    """A command of a page without what only the simulated machine needs."""
    return " ".join(command.replace('"$GANTRY_ROOT"', "").split())


def uncovered(read: list[Page], wanted: list[tuple[str, str]]) -> list[str]:
    """Commands that are neither run nor listed with a reason, or both, or listed twice; and entries that are no command of the notes."""
    wrong, run, listed = [], collections.defaultdict(set), collections.defaultdict(list)
    for page in read:
        run[seed_of(page)].update(as_typed(command) for command in page.run() + page.run_by_lanes())
        listed[seed_of(page)] += [one for entry in page.not_run for one in entry.commands]
    for seed, command in wanted:
        times = sum(lists(one, command) for one in listed[seed])
        if (command in run[seed]) + times != 1:
            wrong.append(f"{seed} {command}: {'run' if command in run[seed] else 'not run'}, listed {times} times")
    for seed, ones in listed.items():
        wrong += [f"{seed} lists what is not in seed_commands.txt: {one}" for one in ones
                  if not any(seed == other and lists(one, command) for other, command in wanted)]
    return wrong


def runners(name: str) -> list[pathlib.Path]:
    """The tests that a block `lane NAME` can mean."""
    tests = FOLDER.parents[1] / "tests"
    return [*tests.glob(f"e2e/**/{name}_lane"), *tests.glob(f"vm/checks/{name}.sh")]


def source(lane: pathlib.Path) -> str:
    """A lane, and the modules beside the lanes that it imports."""
    text = lane.read_text()
    modules = (FOLDER.parents[1] / f"tests/e2e/{name}.py" for name in re.findall(r"^from (\w+) import", text, flags=re.M))
    return text + "".join(module.read_text() for module in modules if module.exists())


def lane_runs(lane: str, page: Page, command: str) -> bool:
    """Whether the source of a lane reads the page, or has this command of it, maybe on several lines."""
    return page.path.name in lane or " ".join(command.split()) in " ".join(re.sub(r"\\+\n", " ", lane).split())


def not_run(read: list[Page]) -> str:
    """The README's list: the pages' own lists, one after the other."""
    parts = [f"### {page.path.name.split('-')[0]}\n\n" + "".join(f"{line}\n" for entry in page.not_run for line in entry.lines)
             for page in read if page.not_run]
    return f"{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}\n"


def with_not_run(readme: str, read: list[Page]) -> str:
    """The README with that list in its place."""
    before, rest = readme.split(BEGIN)
    return before + not_run(read) + rest.split(END + "\n")[1]
