// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/module_checksums.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/checksum.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_package {
namespace {

constexpr std::size_t kListLimit = std::size_t{1} << 20;
constexpr std::size_t kDigestDigits = 64;

Error make_a_list(Errc code, std::string text, const std::string& directory) {
  return Error(code, std::move(text))
      .advise(fmt::format("where they were built: cd {} && sha256sum *.ko > {}; or "
                          "--trust-modules-without-digest",
                          directory, kChecksumFile));
}

// The names below `prefix`, without it.
std::map<std::string, std::string> names_below(const std::map<std::string, std::string>& all,
                                               std::string_view prefix) {
  std::map<std::string, std::string> found;
  for (const auto& [name, digest] : all) {
    const auto plain = std::string_view(name).substr(name.starts_with("./") ? 2 : 0);
    if (plain.starts_with(prefix)) found.emplace(plain.substr(prefix.size()), digest);
  }
  return found;
}

}  // namespace

Result<std::map<std::string, std::string>> parse_checksums(std::string_view text) {
  if (text.size() > kListLimit) return Error(Errc::Corrupt, "the list of digests is too large");
  std::map<std::string, std::string> digests;
  for (const auto line : lines(text)) {
    if (trim(line).empty()) continue;
    const auto digest = parse_sha256(line.substr(0, kDigestDigits));
    const auto rest = line.substr(std::min(kDigestDigits, line.size()));
    const bool plain = rest.size() > 2 && rest[0] == ' ' && (rest[1] == ' ' || rest[1] == '*');
    if (!digest.ok() || !plain)
      return Error(Errc::Corrupt,
                   fmt::format("`{}` is not a line of sha256sum", printable(line.substr(0, 120))));
    digests.insert_or_assign(std::string(rest.substr(2)), *digest);
  }
  return digests;
}

Result<ModuleChecksums> read_module_checksums(const sys::Host& host, const std::string& top,
                                              const std::string& directory,
                                              const std::string& pinned) {
  ModuleChecksums checksums{.path = join_path(directory, kChecksumFile)};
  std::string prefix;
  if (directory != top && !host.exists(checksums.path)) {
    checksums.path = join_path(top, kChecksumFile);
    prefix = fmt::format("{}/", base_name(directory));
  }
  const auto shown = host.outside(checksums.path);
  const auto text = host.read(checksums.path, kListLimit);
  if (!text.ok() && text.error().code() == Errc::NotFound)
    return make_a_list(Errc::NotFound,
                       fmt::format("{} has no {} with the digests of its modules",
                                   host.outside(directory), kChecksumFile),
                       directory);
  GANTRY_CHECK(text);
  if (!pinned.empty()) {
    GANTRY_TRY(const auto wanted, parse_sha256(pinned));
    Sha256 sum;
    sum.add(*text);
    const auto found = sum.finish();
    if (found != wanted)
      return Error(Errc::Denied, fmt::format("{} has the digest {}, not {}", shown, found, wanted))
          .advise("it is another list or damaged: get it again from a source that you trust");
  }
  GANTRY_TRY(const auto all, parse_checksums(*text).in(shown));
  checksums.digests = names_below(all, prefix);
  return checksums;
}

Status check_module_digest(const sys::Host& host, const ModuleChecksums& checksums,
                           const std::string& name, const std::string& path) {
  const auto listed = checksums.digests.find(name);
  const auto list = host.outside(checksums.path);
  if (listed == checksums.digests.end())
    return make_a_list(Errc::Denied, fmt::format("{} has no digest of {}", list, name),
                       std::string(parent_directory(checksums.path)));
  GANTRY_TRY(const auto found, sha256_of(host, path));
  if (found == listed->second) return {};
  return Error(Errc::Denied, fmt::format("{} has the digest {}, and {} has {}", name, found, list,
                                         listed->second))
      .advise("it is another module or damaged: copy it again from where it was built");
}

}  // namespace gantry::driver_package
