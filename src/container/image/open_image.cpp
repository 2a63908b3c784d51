// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "container/image/parts_internal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>

namespace gantry::image {
namespace {

constexpr std::string_view kBlobs = "/blobs/sha256";
constexpr std::size_t kMostBlobs = 4096;
constexpr std::string_view kHowToSave =
    "give a directory, an OCI layout, or what `docker save IMAGE -o FILE` wrote";

// A directory, and the image's files in it.
class UnpackedImage : public DirectoryFiles {
 public:
  explicit UnpackedImage(std::unique_ptr<const rootfs::Root> root)
      : DirectoryFiles(*root), owned_(std::move(root)) {}

 private:
  std::unique_ptr<const rootfs::Root> owned_;
};

// A link that leads nowhere is a file that is missing, which matters only if the image uses it.
Status add_file(const rootfs::Root& layout, const std::string& path, Parts& parts,
                ReadBudget& budget) {
  const auto info = layout.info(path);
  if (!info.ok() || info->kind != sys::FileKind::Regular) return {};
  GANTRY_TRY(const auto fd, layout.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  GANTRY_CHECK(budget.take_bytes(info->size));
  auto stream = file_stream(fd.get());
  GANTRY_TRY(auto part, read_part(stream, budget).in(path));
  parts.files.insert_or_assign(path.substr(1), std::move(part));
  return {};
}

Result<Image> read_layout(const rootfs::Root& layout, const ReadLimits& limits) {
  ReadBudget budget(limits);
  Parts parts;
  GANTRY_CHECK(add_file(layout, "/index.json", parts, budget));
  GANTRY_TRY(const auto blobs, layout.list(kBlobs, kMostBlobs));
  for (const auto& name : blobs)
    GANTRY_CHECK(add_file(layout, join_path(kBlobs, name), parts, budget));
  return assemble(std::move(parts));
}

Result<Image> open_directory(const std::string& path, const ReadLimits& limits) {
  GANTRY_TRY(auto root, rootfs::Root::at(path));
  if (root.info("/index.json").ok() && root.info(kBlobs).ok()) return read_layout(root, limits);
  auto owned = std::make_unique<const rootfs::Root>(std::move(root));
  return Image{.form = "directory", .files = std::make_shared<UnpackedImage>(std::move(owned))};
}

Result<Image> read_stream(ByteStream& stream, const ReadLimits& limits) {
  ReadBudget budget(limits);
  constexpr std::size_t kTarHead = 512;
  GANTRY_TRY(const auto start, stream.peek(kTarHead));
  if (compression_of(start) == Compression::Gzip) {
    auto unpacked = gunzip_stream(stream, budget);
    GANTRY_TRY(auto parts, read_parts(unpacked, budget));
    return assemble(std::move(parts));
  }
  if (compression_of(start) != Compression::None)
    return Error(Errc::Unsupported, "it is packed by zstd, bzip2 or xz, which Gantry does not read")
        .advise("unpack it first: zstd -d FILE, bunzip2 FILE or unxz FILE");
  if (!is_tar(start))
    return Error(Errc::Invalid, "it is not an archive of an image").advise(kHowToSave);
  GANTRY_TRY(auto parts, read_parts(stream, budget));
  return assemble(std::move(parts));
}

}  // namespace

std::string_view own_architecture() {
#if defined(__aarch64__)
  return "arm64";
#else
  return "amd64";
#endif
}

Result<Image> read_archive(int fd, const ReadLimits& limits) {
  auto stream = file_stream(fd);
  return read_stream(stream, limits);
}

Result<Image> open_image(const std::string& path, const ReadLimits& limits) {
  if (path == "-") return read_archive(STDIN_FILENO, limits).in("standard input");
  const sys::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) {
    const int err = errno;
    return Error::sys(err, "open").in(path).advise(kHowToSave);
  }
  GANTRY_TRY(const auto info, sys::file_info(fd.get(), path));
  if (info.kind == sys::FileKind::Directory) return open_directory(path, limits).in(path);
  if (info.kind != sys::FileKind::Regular && info.kind != sys::FileKind::Fifo)
    return Error(Errc::Invalid, fmt::format("{} is neither a directory nor a file", path))
        .advise(kHowToSave);
  return read_archive(fd.get(), limits).in(path);
}

}  // namespace gantry::image
