// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_file.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "gpu/loader/elf.hpp"
#include "install/kernel_module/loaded_modules.hpp"
#include "install/kernel_module/module_signature_internal.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::kernel_module {
namespace {

constexpr std::uint16_t kRelocatable = 1;  // ET_REL
constexpr std::uint64_t kMaxInfo = 1 << 20;
constexpr std::uint32_t kMaxSignature = 1 << 16;
constexpr std::size_t kMaxValue = 512;
constexpr std::size_t kMaxDepends = 256;

// Parts of a file, from a descriptor or from bytes.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes), size_(bytes.size()) {}
  Bytes(int fd, std::uint64_t size) : fd_(fd), size_(size) {}

  std::uint64_t size() const { return size_; }
  Result<loader::Elf> elf() const {
    return fd_ < 0 ? loader::Elf::open(bytes_) : loader::Elf::open(fd_);
  }
  // Up to `count` bytes; fewer at the end.
  Result<std::string> read(std::uint64_t offset, std::size_t count) const {
    if (fd_ < 0) return std::string(bytes_.substr(std::min(offset, size_), count));
    std::string part(count, '\0');
    std::size_t filled = 0;
    while (filled < count) {
      const auto got =
          ::pread(fd_, part.data() + filled, count - filled, static_cast<off_t>(offset + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error::sys(errno, "read");
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
    }
    part.resize(filled);
    return part;
  }

 private:
  int fd_ = -1;
  std::string_view bytes_;
  std::uint64_t size_;
};

struct Packing {
  std::string_view magic;
  std::string_view program;
};
constexpr Packing kPackings[] = {
    {{"\xfd\x37zXZ\0", 6}, "xz"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"\x1f\x8b", "gzip"}};

Status refuse_compressed(std::string_view start) {
  for (const auto& [magic, program] : kPackings) {
    if (!start.starts_with(magic)) continue;
    return Error(Errc::Unsupported, fmt::format("the module is compressed with {}", program))
        .advise(fmt::format("unpack it with: {} -dk FILE", program));
  }
  return {};
}

void take_value(ModuleFile& module, std::string_view key, std::string_view value) {
  const auto text = printable(value.substr(0, kMaxValue));
  if (key == "name") module.name = module_name(text);
  if (key == "vermagic") module.vermagic = text;
  if (key == "version") module.version = text;
  if (key == "license") module.license = text;
  if (key != "depends") return;
  for (const auto name : split(value, ',')) {
    if (!name.empty() && module.depends.size() < kMaxDepends)
      module.depends.push_back(printable(name.substr(0, kMaxValue)));
  }
}

// "key=value" with a NUL after each.
void take_info(ModuleFile& module, std::string_view info) {
  while (!info.empty()) {
    const auto entry = info.substr(0, info.find('\0'));
    info.remove_prefix(std::min(entry.size() + 1, info.size()));
    const auto equals = entry.find('=');
    if (equals != std::string_view::npos)
      take_value(module, entry.substr(0, equals), entry.substr(equals + 1));
  }
}

Status read_signature(const Bytes& bytes, ModuleFile& module) {
  const auto length = std::min<std::uint64_t>(bytes.size(), kSignatureTrailer);
  GANTRY_TRY(const auto end, bytes.read(bytes.size() - length, length));
  GANTRY_TRY(const auto trailer, parse_signature_trailer(end, bytes.size()));
  if (!trailer) return {};
  module.is_signed = true;
  if (!trailer->is_pkcs7 || trailer->size > kMaxSignature) return {};
  GANTRY_TRY(const auto message,
             bytes.read(bytes.size() - kSignatureTrailer - trailer->size, trailer->size));
  if (auto signer = parse_signer(message)) {
    module.signer = std::move(signer->name);
    module.signature_serial = std::move(signer->serial);
  }
  return {};
}

Result<ModuleFile> parse(const Bytes& bytes) {
  GANTRY_TRY(const auto start, bytes.read(0, 8));
  GANTRY_CHECK(refuse_compressed(start));
  GANTRY_TRY(const auto elf, bytes.elf());
  if (elf.type() != kRelocatable)
    return Error(Errc::Corrupt, "it is a program or a library, not a kernel module");
  if (!elf.is_64bit()) return Error(Errc::Unsupported, "it is a module for a 32-bit kernel");
  GANTRY_TRY(const auto info, elf.section(".modinfo", kMaxInfo));
  if (!info) return Error(Errc::Corrupt, "it is not a kernel module: it has no section .modinfo");
  ModuleFile module{.machine = elf.machine()};
  take_info(module, *info);
  GANTRY_CHECK(read_signature(bytes, module));
  return module;
}

}  // namespace

Result<ModuleFile> parse_module(std::string_view bytes) {
  return parse(Bytes(bytes));
}

Result<ModuleFile> read_module(const sys::Host& host, const std::string& path) {
  GANTRY_TRY(const auto fd, host.open(path, O_RDONLY | O_NONBLOCK));
  const auto shown = host.outside(path);
  GANTRY_TRY(const auto info, sys::file_info(fd.get(), shown));
  if (info.kind != sys::FileKind::Regular)
    return Error(Errc::Invalid, fmt::format("{} is not a file", shown));
  auto module = parse(Bytes(fd.get(), info.size)).in(shown);
  // Modules of kernels before 4.14 do not have their name inside.
  if (module.ok() && module->name.empty()) {
    const auto name = base_name(path);
    module->name = module_name(name.substr(0, name.find('.')));
  }
  return module;
}

std::string kernel_release(const ModuleFile& file) {
  return file.vermagic.substr(0, file.vermagic.find(' '));
}

std::optional<bool> module_is_signed(const sys::Host& host, const std::string& path) {
  if (!path.ends_with(".ko")) return std::nullopt;
  const auto info = host.info(path);
  const auto fd = host.open(path, O_RDONLY | O_NONBLOCK);
  if (!info.ok() || !fd.ok()) return std::nullopt;
  if (info->size < kSignatureMark.size()) return false;
  const auto end =
      Bytes(fd->get(), info->size).read(info->size - kSignatureMark.size(), kSignatureMark.size());
  if (!end.ok()) return std::nullopt;
  return *end == kSignatureMark;
}

}  // namespace gantry::kernel_module
