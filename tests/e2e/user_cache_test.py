#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The user's cache: built once for each recipe, shared, and never half of something."""
import multiprocessing
import os
import pathlib
import tempfile
import time
import unittest

import user_cache


class UserCache(unittest.TestCase):
    def setUp(self) -> None:
        self.work = tempfile.TemporaryDirectory(prefix="gantry-cache-test-")
        self.addCleanup(self.work.cleanup)
        self.before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = self.work.name
        self.addCleanup(lambda: os.environ.pop("XDG_CACHE_HOME") if self.before is None else os.environ.update(XDG_CACHE_HOME=self.before))
        self.made = 0

    def make(self, work: pathlib.Path) -> None:
        self.made += 1
        (work / "program").write_text(str(self.made))

    def names(self) -> list[str]:
        return sorted(path.name for path in user_cache.directory().iterdir() if not path.name.endswith(".lock"))

    def test_is_below_the_users_cache_directory(self) -> None:
        self.assertEqual(user_cache.directory(), pathlib.Path(self.work.name) / "gantry")
        del os.environ["XDG_CACHE_HOME"]
        self.assertEqual(user_cache.directory(), pathlib.Path.home() / ".cache/gantry")
        os.environ["XDG_CACHE_HOME"] = self.work.name

    def test_same_recipe_is_made_once(self) -> None:
        first, second = (user_cache.once("tool", ["v1", "-s"], self.make) for _ in range(2))
        self.assertEqual((first, self.made, (first / "program").read_text()), (second, 1, "1"))

    def test_another_recipe_is_another_directory(self) -> None:
        source = pathlib.Path(self.work.name) / "go.sum"
        source.write_text("one")
        places = {user_cache.once("tool", ["v1", source], self.make), user_cache.once("tool", ["v2", source], self.make)}
        source.write_text("two")
        places.add(user_cache.once("tool", ["v1", source], self.make))
        self.assertEqual((len(places), self.made), (3, 3))

    def test_key_depends_on_where_parts_end(self) -> None:
        self.assertNotEqual(user_cache.key(["ab", "c"]), user_cache.key(["a", "bc"]))

    def test_failed_build_leaves_nothing(self) -> None:
        def fails(work: pathlib.Path) -> None:
            (work / "half").touch()
            raise RuntimeError("no network")
        with self.assertRaises(RuntimeError):
            user_cache.once("tool", ["v1"], fails)
        self.assertEqual(self.names(), [])

    def test_leftovers_of_a_killed_build_are_removed(self) -> None:
        leftover = user_cache.directory() / ".tool-0123456789abcdef"
        leftover.mkdir(parents=True)
        place = user_cache.once("tool", ["v1"], self.make)
        self.assertEqual(self.names(), [place.name])

    def test_only_outdated_unused_directories_are_removed(self) -> None:
        long_ago = time.time() - (user_cache.UNUSED_DAYS + 1) * 86400
        old, used, other = (user_cache.once(*what, self.make) for what in (("tool", ["v1"]), ("tool", ["v2"]), ("tool-two", ["v1"])))
        for place in (old, other):
            os.utime(place, (long_ago, long_ago))
        new = user_cache.once("tool", ["v3"], self.make)
        self.assertEqual(self.names(), sorted(place.name for place in (used, other, new)))

    def test_two_at_once_build_once(self) -> None:
        counter = pathlib.Path(self.work.name) / "builds"

        def slow(work: pathlib.Path) -> None:
            with counter.open("a") as file:
                file.write("x")
            time.sleep(0.3)
            (work / "program").touch()

        processes = [multiprocessing.Process(target=user_cache.once, args=("tool", ["v1"], slow)) for _ in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        self.assertEqual((counter.read_text(), [p.exitcode for p in processes]), ("x", [0, 0, 0]))


if __name__ == "__main__":
    unittest.main()
