// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/run_header.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/file_bytes_internal.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace gantry::driver_package {
namespace {

// The settings are in the first lines. A value is a word, or in double quotes; in the oldest files
// in single quotes.
constexpr std::size_t kSettingLines = 64;
constexpr std::size_t kLineLength = 1024;
constexpr std::uint64_t kMostLines = 100'000;  // of the script and the program that unpacks

constexpr std::string_view kNoMd5 = "00000000000000000000000000000000";

using Settings = std::map<std::string_view, std::string_view, std::less<>>;

Error not_a_run_file(std::string_view why) {
  return Error(Errc::Invalid, fmt::format("not a .run file of NVIDIA's: {}", why))
      .advise("check that the whole file was downloaded and that it is not a web page");
}

Error damaged(std::string_view why) {
  return Error(Errc::Corrupt, fmt::format("the .run file is damaged: {}", why))
      .advise("download it again");
}

std::string_view next_line(std::string_view& text) {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view without_quotes(std::string_view value) {
  if (value.size() >= 2 && value.front() == value.back() &&
      (value.front() == '"' || value.front() == '\''))
    return value.substr(1, value.size() - 2);
  return value;
}

// A name that is assigned twice keeps its first value, which is the one that the file was made
// with.
Settings read_settings(std::string_view text) {
  Settings settings;
  for (std::size_t i = 0; i < kSettingLines && !text.empty(); ++i) {
    const auto line = next_line(text);
    const auto equals = line.find('=');
    if (line.size() > kLineLength || equals == std::string_view::npos || line.front() == '#')
      continue;
    settings.try_emplace(line.substr(0, equals), without_quotes(trim(line.substr(equals + 1))));
  }
  return settings;
}

std::string_view setting(const Settings& settings, std::string_view name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::string_view() : found->second;
}

// The word after `marker` on its line; "" if there is none. Looks into the script only.
std::string_view word_after(std::string_view script, std::string_view marker) {
  const auto at = script.find(marker);
  if (at == std::string_view::npos) return {};
  auto rest = script.substr(at + marker.size());
  rest = trim(rest.substr(0, rest.find_first_of("\n\"")));
  return rest.substr(0, rest.find(' '));
}

// Where line number `line`, counted from 1, begins; nullopt if it is not in the text.
std::optional<std::size_t> offset_of_line(std::string_view text, std::uint64_t line) {
  std::size_t offset = 0;
  for (std::uint64_t at = 1; at < line; ++at) {
    const auto end = text.find('\n', offset);
    if (end == std::string_view::npos) return std::nullopt;
    offset = end + 1;
  }
  return offset;
}

std::string_view compression_of(std::string_view payload) {
  using namespace std::string_view_literals;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kMagic = {{
      {"\xfd"
       "7zXZ\0"sv,
       "xz"},
      {"\x28\xb5\x2f\xfd"sv, "zstd"},
      {"\x1f\x8b\x08"sv, "gzip"},
      {"BZh"sv, "bzip2"},
      {"\x5d\0\0"sv, "lzma"},
  }};
  for (const auto& [magic, name] : kMagic)
    if (payload.starts_with(magic)) return name;
  return payload.substr(std::min<std::size_t>(payload.size(), 257)).starts_with("ustar") ? "none"
                                                                                         : "";
}

bool is_md5(std::string_view text) {
  return text.size() == 32 &&
         std::ranges::all_of(text, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

// The label, the version and the target directory name the same driver; only old files have no
// version of its own.
Status name_driver(const Settings& settings, RunHeader& header) {
  header.label = printable(setting(settings, "label"));
  header.target_directory = setting(settings, "targetdir");
  header.script = printable(setting(settings, "script"));
  GANTRY_TRY(const auto name, parse_run_name(header.target_directory).in("its target directory"));
  header.version = name.version;
  header.architecture = name.architecture;
  header.kind = name.kind;
  const auto version = setting(settings, "version_string");
  if (!version.empty() && version != header.version)
    return damaged(fmt::format("it names version {} and the directory {}", printable(version),
                               header.target_directory));
  const auto architecture = setting(settings, "TARGET_ARCH");
  if (!architecture.empty() && architecture != header.architecture)
    return damaged(fmt::format("it names architecture {} and the directory {}",
                               printable(architecture), header.target_directory));
  return {};
}

Status read_sums(const Settings& settings, RunHeader& header) {
  const auto crc = parse_u64(setting(settings, "CRCsum"));
  if (!crc || *crc > UINT32_MAX) return not_a_run_file("it has no CRCsum");
  header.crc = static_cast<std::uint32_t>(*crc);
  const auto md5 = setting(settings, "MD5");
  if (md5.empty() || md5 == kNoMd5) return {};
  if (!is_md5(md5)) return damaged("its MD5 sum is not one");
  header.md5 = md5;
  return {};
}

Status find_payload(std::string_view prefix, std::uint64_t file_bytes, std::uint64_t skip,
                    RunHeader& header) {
  const auto offset = offset_of_line(prefix, skip);
  if (!offset && file_bytes > prefix.size())
    return Error(Errc::Unsupported, fmt::format("the script of the .run file has more than {}",
                                                human_bytes(prefix.size())));
  if (!offset || *offset >= file_bytes) return damaged("it ends before its archive begins");
  header.payload_offset = *offset;
  header.payload_bytes = file_bytes - *offset;
  header.compression = compression_of(prefix.substr(*offset));
  if (header.compression.empty())
    return Error(
               Errc::Unsupported,
               fmt::format("the archive at byte {} of the .run file has an unknown form", *offset))
        .advise("`sh FILE --check` tells whether the file is damaged");
  return {};
}

}  // namespace

Result<RunHeader> parse_run_header(std::string_view prefix, std::uint64_t file_bytes) {
  if (prefix.size() > kRunPrefix || prefix.size() > file_bytes)
    return Error(Errc::Invalid, "more bytes than the beginning of a .run file");
  if (!prefix.starts_with("#!") || !contains(prefix.substr(0, 32), "/sh\n"))
    return not_a_run_file("it is not a shell script");
  const auto settings = read_settings(prefix);
  const auto skip = parse_u64(setting(settings, "skip"));
  if (!skip || *skip < 4 || *skip > kMostLines)
    return not_a_run_file("the script does not say where the archive begins");
  RunHeader header;
  GANTRY_CHECK(name_driver(settings, header));
  GANTRY_CHECK(read_sums(settings, header));
  GANTRY_CHECK(find_payload(prefix, file_bytes, *skip, header));
  const auto script = prefix.substr(0, static_cast<std::size_t>(header.payload_offset));
  header.maker = printable(word_after(script, "Generated by Makeself "));
  const auto kib = parse_u64(word_after(script, "Uncompressed size : "));
  if (kib && *kib < (std::uint64_t{1} << 40)) header.unpacked_bytes = *kib << 10;
  return header;
}

Result<RunHeader> read_run_header(const sys::Host& host, const std::string& path) {
  const auto doing = fmt::format("reading {}", path);
  GANTRY_TRY(const auto fd, host.open(path, O_RDONLY | O_NONBLOCK).in(doing));
  GANTRY_TRY(const auto info, sys::file_info(fd.get(), path));
  if (info.kind != sys::FileKind::Regular)
    return Error(Errc::Invalid, fmt::format("{} is not a file", path));
  GANTRY_TRY(const auto prefix, read_prefix(fd.get(), kRunPrefix, path));
  return parse_run_header(prefix, info.size).in(doing);
}

}  // namespace gantry::driver_package
