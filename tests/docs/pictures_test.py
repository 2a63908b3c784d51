#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The diagrams and plots of docs/pictures are what their sources say, can be read by everybody, and are shown."""
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

TOP = pathlib.Path(__file__).resolve().parents[2]
PICTURES = TOP / "docs/pictures"
SVG = "{http://www.w3.org/2000/svg}"
sys.dont_write_bytecode = True
sys.path[:0] = [str(TOP / "tools"), str(PICTURES)]
import boxes_svg  # noqa: E402
import plots  # noqa: E402

FIGURES = ("000 gpu_on_linux", "000 gpu_on_container", "000 gpu_on_esx_passthrough", "000 gpu_on_esx_vgpu", "000 gpu_on_kubernetes", "000 nvidia1",
           "000 nvidia2", "002 nvidia-docker-arch", "002 oci-spec", "002 container-lifecycle", "002 k8s-device-plugin", "002 k8s-device-schedule",
           "002 ali-gpu-share", "002 Vfio-device-assignment-common", "002 Vfio-device-assignment-viommu")  # of the notes, in their order
SMALL = "title A box\nabout One box.\nbox one 0 0 8 2 | one\n"


def diagrams() -> list[str]:
    return sorted([source.stem for source in (PICTURES / "drawings").glob("*.txt")] + list(plots.PLOTS))


class Pictures(unittest.TestCase):
    def test_are_not_stale(self) -> None:
        done = subprocess.run([PICTURES / "draw_diagrams", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", 0))

    def test_have_a_title_a_description_and_a_width_for_pages(self) -> None:
        for name in diagrams():
            with self.subTest(name):
                root = ElementTree.parse(PICTURES / f"{name}.svg").getroot()
                self.assertLessEqual(float(root.get("width")), 1000)
                self.assertTrue(root.findtext(f"{SVG}title"))
                self.assertTrue(root.findtext(f"{SVG}desc"))
                self.assertIn("prefers-color-scheme: dark", root.findtext(f"{SVG}style"))

    def test_are_listed_and_shown(self) -> None:
        listed = (PICTURES / "README.md").read_text()
        pages = "".join(page.read_text() for page in (TOP / "docs").rglob("*.md") if page.parent != PICTURES)
        for name in diagrams():
            self.assertIn(f"]({name}.svg)", listed)
            self.assertRegex(pages, rf"!\[[^]]+\]\([./]*pictures/{name}\.svg\)")

    def test_the_table_has_every_figure_of_the_notes(self) -> None:
        rows = re.findall(r"^\| (\d{3}) \| ([\w-]+)[^|]* \| ([^|]*) \|", (PICTURES / "README.md").read_text(), re.M)
        self.assertEqual(tuple(f"{seed} {figure}" for seed, figure, _ in rows), FIGURES)
        for seed, figure, drawing in rows:
            self.assertRegex(drawing, r"\[[\w-]+\]\([\w-]+\.svg\)|not yet: ", figure)

    def test_links_of_their_page_lead_somewhere(self) -> None:
        for link in re.findall(r"\]\(([^)#]+)\)", (PICTURES / "README.md").read_text()):
            self.assertTrue((PICTURES / link).exists(), link)


class Drawing(unittest.TestCase):
    def test_says_what_is_wrong_and_where(self) -> None:
        self.assertIn(">one</text>", boxes_svg.draw(SMALL))
        for line, wrong in (("box two 0 4 2 2 | a text that is too long", "line 4: 'a text that is too long' does not fit into 2 cells"),
                            ("box two 0 4 8 1 | a | b", "line 4: 2 lines do not fit into 1 cells"),
                            ("box two 0 4 8 2 vendor | two", "line 4: no kind of box: vendor"),
                            ("arrow one three", "line 4: no box three above this line"), ("circle 1 2", "line 4: no such thing: circle"),
                            ("box far 60 0 8 2 | far", "1400 pixels wide"),
                            ("box two 12 0 8 2 | two\nbox three 24 0 8 2 | three\narrow one three", "the arrow from one to three goes through 'two'")):
            with self.subTest(line):
                with self.assertRaises(boxes_svg.DrawingError) as failed:
                    boxes_svg.draw(SMALL + line)
                self.assertIn(wrong, str(failed.exception))
        with self.assertRaisesRegex(boxes_svg.DrawingError, "`title` and `about` are missing"):
            boxes_svg.draw("box one 0 0 8 2 | one")


unittest.main()
