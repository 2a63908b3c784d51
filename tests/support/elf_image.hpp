// SPDX-License-Identifier: Apache-2.0
// A minimal shared library as bytes, for trees that need files with a SONAME and no compiler.
#pragma once

#include <string>
#include <vector>

namespace gantry::test {

struct ElfImage {
  std::string soname{};
  std::vector<std::string> needed{};
  bool is_32bit = false;
  std::string note_owner{};  // with `note`: one note of type 1 in a segment
  std::string note{};
  std::string note_section{};  // also a section of this name around the note
};

std::string elf_image(const ElfImage& image);

}  // namespace gantry::test
