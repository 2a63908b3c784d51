// SPDX-License-Identifier: Apache-2.0
// One layer of an image, read from its tar archive: what it adds, and what it removes from the
// layers below it. Paths are absolute and have no "." or ".."; a member whose name has ".." is left
// out, as engines refuse it.
#pragma once

#include "container/image/byte_stream.hpp"
#include "container/image/tar_reader.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::image {

struct LayerFile {
  MemberKind kind = MemberKind::File;  // never HardLink
  std::optional<std::uint16_t> elf_machine;
  std::uint64_t size = 0;
  std::string target;                          // of a symlink
  std::shared_ptr<const std::string> content;  // if it was kept
};

using LayerFiles = std::map<std::string, LayerFile, std::less<>>;

struct Layer {
  LayerFiles files;
  std::vector<std::string> removed;  // whiteouts, .wh.NAME
  std::vector<std::string> opaque;   // directories whose lower content is hidden, .wh..wh..opq
};

// A tar archive, plain or packed by gzip. Unsupported for another compression.
Result<Layer> read_layer(ByteStream& stream, ReadBudget& budget);

}  // namespace gantry::image
