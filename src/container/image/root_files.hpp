// SPDX-License-Identifier: Apache-2.0
// An image's files, wherever they are: in a directory, or in the layers of an archive. They are
// looked at and never executed; symlinks are followed inside the image's root.
#pragma once

#include "container/rootfs/root.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::image {

class RootFiles {
 public:
  virtual ~RootFiles() = default;

  // Of any kind; a broken link does not exist.
  virtual bool exists(std::string_view path) const = 0;
  // Of a regular file.
  virtual std::optional<std::uint64_t> size(std::string_view path) const = 0;
  // A regular file of at most `limit` bytes. Of an archive, only the files that kept_limit() names
  // were kept.
  virtual std::optional<std::string> read(std::string_view path, std::size_t limit) const = 0;
  // The machine of an ELF file's header, loader::kMachineAmd64.
  virtual std::optional<std::uint16_t> elf_machine(std::string_view path) const = 0;
  // Names in a directory, sorted; none if it is not a directory.
  virtual std::vector<std::string> list(std::string_view path) const = 0;
};

// A directory: of an unpacked image, or of a running container.
class DirectoryFiles : public RootFiles {
 public:
  explicit DirectoryFiles(const rootfs::Root& root) : root_(root) {}  // which must outlive it

  bool exists(std::string_view path) const override;
  std::optional<std::uint64_t> size(std::string_view path) const override;
  std::optional<std::string> read(std::string_view path, std::size_t limit) const override;
  std::optional<std::uint16_t> elf_machine(std::string_view path) const override;
  std::vector<std::string> list(std::string_view path) const override;

 private:
  const rootfs::Root& root_;
};

// A name in the directory matches the shell pattern.
bool any_name(const RootFiles& files, std::string_view directory, std::string_view pattern);

// How many bytes at the beginning of a file elf_machine_of() needs.
inline constexpr std::size_t kElfHead = 20;
std::optional<std::uint16_t> elf_machine_of(std::string_view head);

// How large a file may be whose content is kept from an archive; 0: it is not kept.
std::size_t kept_limit(std::string_view path);

}  // namespace gantry::image
