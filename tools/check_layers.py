#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every #include below src/ and sim/ with the order of the areas and the DEPS of the modules.

check_layers.py             fails on an upward edge, an undeclared edge, a cycle, a forbidden link closure, a pure module
                            that is not pure, or a stale picture in docs/architecture.md
check_layers.py --write     writes the picture
check_layers.py --graph     prints the include graph, area by area
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- areas: written by tools/check_layers.py --write -->", "<!-- end of areas -->"

# What a static program must not reach, however indirectly. It must not call dlopen, either.
FORBIDDEN = {
    "apps/gantry": {"nvml"},
    "apps/gantry_runtime": {"driver", "nvml", "nvml_child", "probe", "kube", "grpc", "http", "dns"},
}
# Libraries without code, and those whose code is in the program's own folder or in one that no other program uses.
NOT_MODULES = {"flags", "static_program", "cli", "command_line", "test_support"}
# These load into other people's programs: libc, the vendor's ABI, and each other.
FREE_OF_BASE = {"driver_sim", "libcuda", "libnvidia-ml", "nvidia-smi", "mps_sim", "fence"}
# Values in, values out: their code, tests aside, includes only from these modules, and no header that reads a machine.
PURE = {
    "explain": {"admission", "core", "json", "model", "placement", "podspec", "topology", "yaml"},
}
IMPURE_SYSTEM_HEADERS = re.compile(
    r"^#\s*include <(fstream|filesystem|iostream|cstdio|cstdlib|ctime|chrono|random|thread|mutex|fcntl\.h|unistd\.h|"
    r"dirent\.h|dlfcn\.h|poll\.h|signal\.h|spawn\.h|(?:sys|net|netinet|arpa|linux)/[^>]+)>",
    re.M,
)
TEST = re.compile(r"(_test|_for_test|_fuzz|_tsan)\.\w+$")


class Module:
    def __init__(self, name: str, area: str, folder: pathlib.Path, deps: set[str]) -> None:
        self.name, self.area, self.folder, self.deps = name, area, folder, deps


def areas() -> list[str]:
    return re.findall(r"add_subdirectory\((\w+)\)", (ROOT / "src/CMakeLists.txt").read_text())


def declared(area: str) -> list[Module]:
    folder = ROOT / "src" / area
    found = []
    for file in sorted(folder.rglob("CMakeLists.txt")):
        text = re.sub(r"#.*", "", file.read_text())
        for call in re.findall(r"gantry_module\(([^)]*)\)", text):
            words = call.split()
            name = words[0]
            where = words[words.index("FOLDER") + 1] if "FOLDER" in words else name
            deps: set[str] = set()
            if "DEPS" in words:
                for word in words[words.index("DEPS") + 1 :]:
                    if word.isupper() or word.startswith("$"):
                        break
                    deps.add(word)
            found.append(Module(name, area, (file.parent / where).resolve(), deps))
    return found


def other_modules() -> list[Module]:
    fence = ROOT / "src/sharing/fence"
    sim = ROOT / "sim"
    return [
        Module("fence", "sharing", fence, {"abi"}),
        Module("driver_sim", "sim", sim / "driver", {"abi"}),
        Module("libnvidia-ml", "sim", sim / "libnvidia-ml", {"abi", "driver_sim"}),
        Module("libcuda", "sim", sim / "libcuda", {"abi", "driver_sim"}),
        Module("nvidia-smi", "sim", sim / "nvidia-smi", {"abi", "driver_sim"}),
        Module("mps_sim", "sim", sim / "mps", {"driver_sim", "nvidia-smi"}),
        Module("sim_package", "sim", sim / "package", {"core", "machine", "sys", "tar"}),
        Module("machine", "sim", sim / "machine", {"abi", "core", "driver_sim", "libnvidia-ml", "loader", "model", "sys", "yaml"}),
    ]


def closure(start: set[str], modules: dict[str, Module]) -> set[str]:
    seen: set[str] = set()
    todo = list(start)
    while todo:
        for dep in modules[todo.pop()].deps:
            if dep in modules and dep not in seen:
                seen.add(dep)
                todo.append(dep)
    return seen


def module_of(path: pathlib.Path, modules: dict[str, Module]) -> Module | None:
    owners = [m for m in modules.values() if path.is_relative_to(m.folder)]
    return max(owners, key=lambda m: len(m.folder.parts), default=None)


def edges(modules: dict[str, Module]) -> list[tuple[pathlib.Path, Module, Module, str]]:
    """Every #include of one module in a file of another: file, its module, the included module, the included path."""
    found = []
    for top in (ROOT / "src", ROOT / "sim"):
        for file in sorted(top.rglob("*")):
            if file.suffix not in (".cpp", ".hpp", ".h", ".c", ".def"):
                continue
            user = module_of(file, modules)
            for include in re.findall(r'^#\s*include "([^"]+)"', file.read_text(), re.M):
                place = ROOT / include if include.startswith("sim/") else ROOT / "src" / include
                used = module_of(place, modules)
                if user and used and user is not used:
                    found.append((file, user, used, include))
    return found


def pure_closure(pure: str, includes: list[tuple[pathlib.Path, Module, Module, str]], bad: list[str]) -> set[str]:
    """The modules that a pure module uses through #includes; adds what it must not include to `bad`."""
    seen, todo = {pure}, [pure]
    while todo:
        name = todo.pop()
        for file, user, used, include in includes:
            if user.name != name or TEST.search(file.name):
                continue
            if used.name not in PURE[pure]:
                bad.append(f"{file.relative_to(ROOT)}: includes {include}, which the pure module {pure} must not reach")
            elif used.name not in seen:
                seen.add(used.name)
                todo.append(used.name)
    return seen


def impurities(modules: dict[str, Module], includes: list[tuple[pathlib.Path, Module, Module, str]]) -> list[str]:
    bad: list[str] = []
    for pure in PURE:
        for name in sorted(pure_closure(pure, includes, bad)):
            if modules[name].area == "base":
                continue  # core and json may use any header of the C library
            for file in sorted(modules[name].folder.glob("*.[ch]pp")):
                if not TEST.search(file.name) and (found := IMPURE_SYSTEM_HEADERS.search(file.read_text())):
                    bad.append(f"{file.relative_to(ROOT)}: includes <{found[1]}>, which the pure module {pure} must not reach")
    return bad


def linked(program: str) -> set[str]:
    """The modules that a program links, by its own CMakeLists.txt."""
    text = re.sub(r"#.*", "", (ROOT / program / "CMakeLists.txt").read_text())
    calls = re.findall(r"target_link_libraries\(([^)]*)\)", text)
    words = [word for call in calls for word in call.split()[1:]]
    names = {word.removeprefix("gantry_") for word in words if word.startswith("gantry_")} - NOT_MODULES
    return {"machine" if name == "sim" else name for name in names}


def forbidden_links(modules: dict[str, Module]) -> list[str]:
    bad = []
    for program, forbidden in FORBIDDEN.items():
        libraries = linked(program)
        if not libraries:
            bad.append(f"{program}: links no module")
        bad += [f"{program}: links gantry_{name}, which is not a module" for name in sorted(libraries - modules.keys())]
        roots = libraries & modules.keys()
        reached = roots | closure(roots, modules)
        if reached & forbidden:
            bad.append(f"{program}: must not reach {', '.join(sorted(reached & forbidden))}")
        code = sorted((ROOT / program).rglob("*.[ch]pp"))
        for name in sorted(reached):
            code += [file for file in sorted(modules[name].folder.rglob("*.[ch]pp")) if module_of(file, modules) is modules[name]]
        for file in code:
            if not TEST.search(file.name) and re.search(r"\bdlm?open\s*\(", file.read_text()):
                bad.append(f"{file.relative_to(ROOT)}: calls dlopen, and {program} links it")
    return bad


def problems(order: list[str], modules: dict[str, Module]) -> list[str]:
    bad = [f"{name}: depends on itself" for name in modules if name in closure({name}, modules)]
    rank = {area: place for place, area in enumerate([*order, "sim"])}
    for module in modules.values():
        for dep in sorted(module.deps):
            if dep not in modules:
                bad.append(f"{module.name}: DEPS names {dep}, which is not a module")
            elif rank[modules[dep].area] > rank[module.area]:
                bad.append(f"{module.area}/{module.name}: DEPS names {modules[dep].area}/{dep}, an area that comes later in src/CMakeLists.txt")
    includes = edges(modules)
    for file, user, used, _ in includes:
        name = file.relative_to(ROOT)
        test = TEST.search(file.name) is not None
        if test and (used.area == "sim" or used.name in closure({user.name}, modules)):
            continue  # simulated machines are what tests run on
        if rank[used.area] > rank[user.area]:
            bad.append(f"{name}: includes {used.area}/{used.name}, an area that comes later in src/CMakeLists.txt than {user.area}")
        elif not test and used.name not in closure({user.name}, modules):
            bad.append(f"{name}: includes {used.name}, not among DEPS of {user.name}")
    for name in FREE_OF_BASE:
        if reached := closure({name}, modules) & {m.name for m in modules.values() if m.area == "base"}:
            bad.append(f"{name}: must stay free of base, reaches {', '.join(sorted(reached))}")
    return bad + forbidden_links(modules) + impurities(modules, includes)


def picture(order: list[str], modules: dict[str, Module]) -> str:
    lines = ["```", " area        modules"]
    for area in [*order, "sim"]:
        names = "  ".join(m.name.removeprefix("doctor_").removesuffix("_sim") for m in modules.values() if m.area == area)
        used = sorted({modules[d].area for m in modules.values() if m.area == area for d in m.deps if d in modules} - {area}, key=[*order, "sim"].index)
        wrapped = textwrap.wrap(names, 84, break_on_hyphens=False)
        lines.append(f" {area:<11} {wrapped[0]}")
        lines += [f" {'':<11} {rest}" for rest in wrapped[1:]]
        if used:
            lines.append(f" {'':<11}   └─ uses {' '.join(used)}")
    return "\n".join([*lines, "```"])


def graph(order: list[str], modules: dict[str, Module]) -> str:
    count: dict[tuple[str, str], int] = {}
    for _, user, used, _ in edges(modules):
        count[user.area, used.area] = count.get((user.area, used.area), 0) + 1
    lines = []
    for user in [*order, "sim"]:
        row = "  ".join(f"{used} {count[user, used]}" for used in [*order, "sim"] if (user, used) in count)
        lines.append(f"{user:<10} includes  {row}")
    return "\n".join(lines)


def main() -> int:
    order = areas()
    modules = {m.name: m for area in order for m in declared(area)}
    modules.update({m.name: m for m in other_modules()})
    if "--graph" in sys.argv:
        print(graph(order, modules))
        return 0
    bad = problems(order, modules)
    text = PICTURE.read_text()
    wanted = f"{BEGIN}\n{picture(order, modules)}\n{END}"
    stale = wanted not in text
    if "--write" in sys.argv and stale:
        before, _, rest = text.partition(BEGIN)
        PICTURE.write_text(before + wanted + rest.partition(END)[2])
        stale = False
    if stale:
        bad.append("docs/architecture.md: the picture of the areas is stale; run tools/check_layers.py --write")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
