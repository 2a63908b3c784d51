#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cri.py writes and reads messages as protobuf has them, and logs as engines write them for a kubelet."""
import pathlib
import tempfile
import unittest

import cri


class Messages(unittest.TestCase):
    def test_texts_and_numbers_have_their_bytes(self) -> None:
        self.assertEqual(cri.encode([(1, "v1")]), b"\x0a\x02v1")
        self.assertEqual(cri.encode([(1, 300)]), b"\x08\xac\x02")
        self.assertEqual(cri.encode([(17, [(1, "x")])]), b"\x8a\x01\x03\x0a\x01x")

    def test_what_is_written_is_read(self) -> None:
        read = cri.decode(cri.encode([(1, [(2, "name")]), (3, 2), (7, 127), *cri.pairs(10, {"key": "value"})]))
        self.assertEqual(cri.decode(read[1]), {2: b"name"})
        self.assertEqual((read[3], read[7]), (2, 127))
        self.assertEqual(cri.decode(read[10]), {1: b"key", 2: b"value"})

    def test_other_wire_types_are_refused(self) -> None:
        with self.assertRaises(ValueError):
            cri.decode(b"\x0d\x00\x00\x00\x00")


class Logs(unittest.TestCase):
    def test_the_text_is_what_follows_the_third_word(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            log = pathlib.Path(directory) / "0.log"
            log.write_text("2026-11-18T20:00:00Z stdout F GPU 0: a b\n2026-11-18T20:00:00Z stderr F two\n")
            self.assertEqual(cri.said(log), "GPU 0: a b\ntwo\n")


if __name__ == "__main__":
    unittest.main()
