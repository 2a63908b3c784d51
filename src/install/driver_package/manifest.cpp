// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/manifest.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/run_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

namespace gantry::driver_package {
namespace {

// Description, version, a module file, the modules, and up to five lines that installers used to
// read. They are words without modes; the first line with a mode is the first file.
constexpr std::size_t kFirstLines = 9;
constexpr std::size_t kSurelyFirst = 4;
constexpr std::size_t kPathLength = 1024;
constexpr std::string_view kDepth = "INHERIT_PATH_DEPTH:";

Error corrupt(std::size_t line, std::string_view why) {
  return {Errc::Corrupt, fmt::format("the package's .manifest, line {}: {}", line, why)};
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
    const auto end = line.find_first_of(" \t\r", at);
    words.push_back(line.substr(at, end - at));
    if (end == std::string_view::npos) break;
    at = end;
  }
  return words;
}

std::optional<std::uint32_t> parse_mode(std::string_view text) {
  const auto mode = parse_u64(text, 8);
  if (text.size() < 3 || text.size() > 5 || !mode || *mode > 07777) return std::nullopt;
  return static_cast<std::uint32_t>(*mode);
}

bool is_type(std::string_view text) {
  return text.size() >= 3 && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
           return (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
         });
}

bool looks_like_file(const std::vector<std::string_view>& words) {
  return words.size() >= 3 && parse_mode(words[1]) && is_type(words[2]);
}

bool is_path(std::string_view text) {
  return !text.empty() && text.size() <= kPathLength && printable(text) == text &&
         std::ranges::none_of(split(text, '/'), [](std::string_view part) { return part == ".."; });
}

// A path that stays below the directory that it is appended to.
bool stays_below(std::string_view path) {
  return is_path(path) && path.front() != '/';
}

// "kernel-open/nvidia/nv.c" at depth 1 is in "nvidia" below the directory of its type.
std::optional<std::string> inherited(std::string_view path, std::string_view depth) {
  const auto levels = parse_u64(depth);
  if (!levels || *levels > 64) return std::nullopt;
  auto rest = path.substr(0, path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
  for (std::uint64_t i = 0; i < *levels; ++i) {
    const auto slash = rest.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(slash + 1);
  }
  if (!rest.empty()) rest.remove_suffix(1);
  return std::string(rest);
}

// Words at the end of a line: the part of the driver that a file belongs to, and with which OpenGL
// it is installed (in branches up to 390).
bool is_mark(std::string_view word) {
  return word.starts_with("MODULE:") || word == "GLVND" || word == "NON_GLVND";
}

// What follows the type. Nothing says which of these words a type has, but each tells by itself
// what it is: an architecture, a kind of thread-local storage (of TLS_LIB in old packages), a
// directory ("/" for none), the target of a link, and marks.
Status read_rest(const std::vector<std::string_view>& words, std::size_t line, ManifestFile& file) {
  auto rest = std::span(words).subspan(3);
  while (!rest.empty() && is_mark(rest.back())) rest = rest.first(rest.size() - 1);
  if (file.is_link()) {
    if (rest.empty()) return corrupt(line, "a link without a target");
    file.link_target = rest.back();
    rest = rest.first(rest.size() - 1);
    if (file.link_target.empty() || file.link_target.front() == '/' ||
        printable(file.link_target) != file.link_target)
      return corrupt(line, "a link to an absolute path");
  }
  for (const auto word : rest) {
    if (word == "NATIVE" || word == "COMPAT32") {
      file.architecture = word == "NATIVE" ? FileArchitecture::Native : FileArchitecture::Compat32;
    } else if (word == "CLASSIC" || word == "NEW" || word == "/") {
      continue;
    } else if (word.starts_with(kDepth)) {
      const auto directory = inherited(file.path, word.substr(kDepth.size()));
      if (!directory) return corrupt(line, "a depth that the path does not have");
      file.directory = *directory;
    } else if (file.directory.empty() && is_path(word)) {
      file.directory = word;  // absolute for EXPLICIT_PATH
    } else {
      return corrupt(line, "a word that no file has there");
    }
  }
  while (file.directory.size() > 1 && file.directory.ends_with('/')) file.directory.pop_back();
  return {};
}

Result<ManifestFile> read_file(const std::vector<std::string_view>& words, std::size_t line) {
  if (!looks_like_file(words)) return corrupt(line, "not of the form NAME MODE TYPE");
  ManifestFile file;
  file.path = words[0];
  file.mode = *parse_mode(words[1]);
  file.type = words[2];
  if (!stays_below(file.path)) return corrupt(line, "a path that leaves the package");
  if ((file.mode & 06000U) != 0 && base_name(file.path) != "nvidia-modprobe")
    return corrupt(line, "a file that would run with the rights of its owner");
  GANTRY_CHECK(read_rest(words, line, file));
  return file;
}

Status read_first_lines(const std::vector<std::string_view>& all, Manifest& manifest) {
  if (all.size() < kSurelyFirst) return corrupt(all.size() + 1, "it ends in its first lines");
  manifest.description = printable(trim(all[0]));
  manifest.version = trim(all[1]);
  if (manifest.description.empty()) return corrupt(1, "no description");
  if (!is_driver_version(manifest.version)) return corrupt(2, "no version of a driver");
  for (const auto word : words_of(all[3])) {
    if (!stays_below(word) || contains(word, "/")) return corrupt(4, "no names of modules");
    manifest.modules.emplace_back(word);
  }
  return {};
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text) {
  if (text.size() > kManifestLimit)
    return Error(Errc::TooLarge,
                 fmt::format("the package's .manifest has {}, more than {}",
                             human_bytes(text.size()), human_bytes(kManifestLimit)));
  const auto all = lines(text);
  Manifest manifest;
  GANTRY_CHECK(read_first_lines(all, manifest));
  for (std::size_t i = kSurelyFirst; i < all.size(); ++i) {
    const auto words = words_of(all[i]);
    if (manifest.files.empty() && i < kFirstLines && !looks_like_file(words)) continue;
    if (words.empty()) break;  // ends the list
    if (manifest.files.size() == kManifestFiles)
      return corrupt(i + 1, fmt::format("more than {} files", kManifestFiles));
    GANTRY_TRY(auto file, read_file(words, i + 1));
    manifest.files.push_back(std::move(file));
  }
  if (manifest.files.empty()) return corrupt(all.size() + 1, "it lists no files");
  return manifest;
}

}  // namespace gantry::driver_package
