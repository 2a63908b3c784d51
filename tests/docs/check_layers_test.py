#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py: every kind of edge that it rejects, on a small tree of its own."""
import importlib.util
import pathlib
import tempfile
import unittest
from unittest import mock

TOP = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("check_layers", TOP / "tools/check_layers.py")
check_layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_layers)

TREE = {
    "src/CMakeLists.txt": "add_subdirectory(base)\nadd_subdirectory(gpu)\nadd_subdirectory(container)\n",
    "src/base/CMakeLists.txt": "gantry_module(core)\ngantry_module(sys DEPS core)\n",
    "src/base/core/text.hpp": "",
    "src/base/sys/file.cpp": '#include "base/core/text.hpp"\n',
    "src/gpu/CMakeLists.txt": "gantry_module(driver DEPS core)\n",
    "src/gpu/driver/library.hpp": "",
    "src/gpu/driver/library.cpp": 'auto open() { return dlopen("libcuda.so.1", 0); }\n',
    "src/container/CMakeLists.txt": "gantry_module(shim DEPS sys)\ngantry_module(hook DEPS shim)\n",
    "src/container/shim/shim.cpp": '#include "base/sys/file.hpp"\n',
    "apps/program/CMakeLists.txt": "target_link_libraries(program PRIVATE gantry_hook gantry_flags)\n",
}


def problems(**changes: str) -> list[str]:
    """What the tool says of the tree after some files have changed; `__` stands for `/`, `_CMAKE` for the list."""
    files = dict(TREE)
    for name, text in changes.items():
        files[name.replace("__", "/").replace("_CMAKE", "/CMakeLists.txt").replace("_cpp", ".cpp")] = text
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        forbidden = {"apps/program": {"driver"}}
        with mock.patch.multiple(check_layers, ROOT=root, FORBIDDEN=forbidden, FREE_OF_BASE=set(), PURE={}):
            order = check_layers.areas()
            modules = {m.name: m for area in order for m in check_layers.declared(area)}
            return check_layers.problems(order, modules)


class CheckLayers(unittest.TestCase):
    def rejects(self, text: str, **changes: str) -> None:
        found = problems(**changes)
        self.assertTrue(any(text in line for line in found), f"{text!r} is not in {found}")

    def test_the_tree_is_accepted_as_it_is(self):
        self.assertEqual(problems(), [])

    def test_deps_on_a_later_area(self):
        self.rejects("base/sys: DEPS names gpu/driver, an area that comes later", src__base_CMAKE="gantry_module(core)\ngantry_module(sys DEPS core driver)\n")

    def test_an_include_of_a_later_area(self):
        self.rejects("src/base/sys/file.cpp: includes gpu/driver", src__base__sys__file_cpp='#include "gpu/driver/library.hpp"\n')

    def test_an_include_that_no_deps_declare(self):
        self.rejects("src/container/shim/shim.cpp: includes driver, not among DEPS", src__container__shim__shim_cpp='#include "gpu/driver/library.hpp"\n')

    def test_a_test_may_not_include_a_later_area(self):
        self.rejects("file_test.cpp: includes gpu/driver", src__base__sys__file_test_cpp='#include "gpu/driver/library.hpp"\n')

    def test_a_cycle(self):
        self.rejects("core: depends on itself", src__base_CMAKE="gantry_module(core DEPS sys)\ngantry_module(sys DEPS core)\n")

    def test_deps_that_are_not_a_module(self):
        self.rejects("DEPS names cores", src__base_CMAKE="gantry_module(core)\ngantry_module(sys DEPS core cores)\n")

    def test_a_forbidden_module_that_a_program_links_itself(self):
        self.rejects("apps/program: must not reach driver", apps__program_CMAKE="target_link_libraries(program PRIVATE gantry_hook gantry_driver)\n")

    def test_a_forbidden_module_two_steps_away(self):
        self.rejects("apps/program: must not reach driver", src__container_CMAKE="gantry_module(shim DEPS sys driver)\ngantry_module(hook DEPS shim)\n")

    def test_a_program_without_modules_and_one_with_an_unknown_library(self):
        self.rejects("apps/program: links no module", apps__program_CMAKE="add_executable(program main.cpp)\n")
        self.rejects("links gantry_other, which is not a module", apps__program_CMAKE="target_link_libraries(program PRIVATE gantry_hook gantry_other)\n")

    def test_dlopen_in_a_linked_module_but_not_in_its_tests(self):
        call = "auto open() { return ::dlopen(nullptr, 0); }\n"
        self.rejects("src/base/sys/file.cpp: calls dlopen, and apps/program links it", src__base__sys__file_cpp=call)
        self.rejects("apps/program/main.cpp: calls dlopen", apps__program__main_cpp=call)
        self.assertEqual(problems(src__base__sys__file_test_cpp=call), [])


class StaticPrograms(unittest.TestCase):
    def test_their_modules_come_from_their_own_build_files(self):
        self.assertIn("nvml_child", check_layers.linked("apps/gantry"))
        self.assertEqual(check_layers.FORBIDDEN["apps/gantry"], {"nvml"})
        self.assertEqual(check_layers.linked("apps/gantry_runtime"), {"shim", "hook", "classic"})
        self.assertIn("driver", check_layers.FORBIDDEN["apps/gantry_runtime"])


if __name__ == "__main__":
    unittest.main()
