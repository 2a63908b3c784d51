// SPDX-License-Identifier: Apache-2.0
#include "container/image/layer.hpp"

#include "base/core/text.hpp"
#include "container/image/root_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::image {
namespace {

constexpr std::size_t kMostPath = 4096;  // as the kernel
constexpr std::size_t kMostDepth = 256;
constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";

// "./usr//bin/x" -> "/usr/bin/x"; "/" for the root itself, nullopt for a name that engines refuse.
std::optional<std::string> absolute(std::string_view name) {
  if (name.size() > kMostPath) return std::nullopt;
  std::string path;
  std::size_t depth = 0;
  for (const auto part : split(name, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." || ++depth > kMostDepth) return std::nullopt;
    path += '/';
    path += part;
  }
  return path.empty() ? "/" : path;
}

class LayerReader {
 public:
  LayerReader(ByteStream& stream, ReadBudget& budget) : tar_(stream, budget), budget_(budget) {}

  Result<Layer> read() {
    while (true) {
      GANTRY_TRY(auto member, tar_.next());
      if (!member) return std::move(layer_);
      GANTRY_CHECK(add(*std::move(member)));
    }
  }

 private:
  Status add(TarMember member) {
    GANTRY_CHECK(budget_.take_entry(member.name, member.target));
    auto path = absolute(member.name);
    if (!path || *path == "/") return {};
    const auto name = base_name(*path);
    if (name.starts_with(kWhiteout)) {
      add_whiteout(*path, name);
      return {};
    }
    GANTRY_TRY(auto file, file_of(std::move(member), *path));
    layer_.files.insert_or_assign(*std::move(path), std::move(file));
    return {};
  }

  void add_whiteout(std::string_view path, std::string_view name) {
    const auto parent = parent_directory(path);
    if (name == kOpaque) {
      layer_.opaque.emplace_back(parent);
    } else if (!name.substr(kWhiteout.size()).starts_with(kWhiteout)) {  // aufs has its own names
      layer_.removed.push_back(join_path(parent, name.substr(kWhiteout.size())));
    }
  }

  Result<LayerFile> file_of(TarMember member, std::string_view path) {
    if (member.kind == MemberKind::HardLink) return linked(member);
    LayerFile file{.kind = member.kind, .size = member.size};
    if (member.kind == MemberKind::Symlink) file.target = std::move(member.target);
    if (member.kind != MemberKind::File) return file;
    const auto limit = kept_limit(path);
    if (member.size <= limit && budget_.keep(member.size)) {
      GANTRY_TRY(auto content, tar_.content().read_all(limit));
      file.elf_machine = elf_machine_of(content);
      file.content = std::make_shared<const std::string>(std::move(content));
    } else {
      std::array<char, kElfHead> head{};
      GANTRY_TRY(const auto got, tar_.read(head));
      file.elf_machine = elf_machine_of(std::string_view(head.data(), got));
    }
    return file;
  }

  // A second name of a file: of the same layer, where tar has it first, or else of a layer below.
  LayerFile linked(const TarMember& member) const {
    const auto target = absolute(member.target);
    const auto found = target ? layer_.files.find(*target) : layer_.files.end();
    if (found != layer_.files.end()) return found->second;
    return {.kind = MemberKind::Symlink, .target = target.value_or("/")};
  }

  TarReader tar_;
  ReadBudget& budget_;
  Layer layer_;
};

}  // namespace

Result<Layer> read_layer(ByteStream& stream, ReadBudget& budget) {
  GANTRY_TRY(const auto start, stream.peek(4));
  switch (compression_of(start)) {
    case Compression::None: return LayerReader(stream, budget).read();
    case Compression::Gzip: {
      auto unpacked = gunzip_stream(stream, budget);
      return LayerReader(unpacked, budget).read();
    }
    case Compression::Zstd:
      return Error(Errc::Unsupported, "a layer is packed by zstd, which Gantry does not read");
    case Compression::Other: break;
  }
  return Error(Errc::Unsupported, "a layer is packed by bzip2 or xz, which Gantry does not read");
}

}  // namespace gantry::image
