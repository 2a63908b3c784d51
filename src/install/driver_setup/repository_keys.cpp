// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "install/driver_package/openpgp_key.hpp"
#include "install/driver_setup/package_database_internal.hpp"
#include "install/driver_setup/repository_keys_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

using driver_package::RepositoryKey;
using Keys = std::vector<RepositoryKey>;

constexpr std::size_t kKeyFileLimit = std::size_t{1} << 20;
constexpr std::string_view kKeyDownloads = "/var/lib/gantry/driver-install/keys";
constexpr std::string_view kPackagePrefix = "gpg-pubkey-";

// Fingerprints; behind those that were named as a file, the key in that file.
using TrustedKeys = std::map<std::string, std::string>;

Result<TrustedKeys> named_keys(const SetupWork& work) {
  TrustedKeys trusted;
  for (const auto& word : work.request.repository_keys) {
    if (auto fingerprint = driver_package::parse_fingerprint(word)) {
      trusted.emplace(*std::move(fingerprint), "");
      continue;
    }
    GANTRY_TRY(const auto text, work.host.read(word, kKeyFileLimit));
    GANTRY_TRY(const auto keys,
               driver_package::parse_repository_keys(text).in(work.host.outside(word)));
    for (const auto& key : keys) trusted.insert_or_assign(key.fingerprint, key.with_subkeys);
  }
  return trusted;
}

// "gpg-pubkey-d42d0685-62589a51" by the fingerprint of the key.
Result<std::map<std::string, std::string>> rpm_keys(InstallEffects& effects) {
  GANTRY_TRY(const auto output,
             effects.run(package_command({"rpm", "-qa", "--qf",
                                          "%{NAME}-%{VERSION}-%{RELEASE}\\n%{DESCRIPTION}\\n",
                                          "gpg-pubkey*"})));
  std::map<std::string, std::string> names;
  for (std::size_t at = 0; at != std::string::npos && at < output.size();) {
    const auto next = output.find(fmt::format("\n{}", kPackagePrefix), at);
    const auto part = std::string_view(output).substr(at, next - at);
    at = next == std::string::npos ? next : next + 1;
    const auto name = part.substr(0, part.find('\n'));
    const auto keys = driver_package::parse_repository_keys(part);
    if (!keys.ok() || !name.starts_with(kPackagePrefix)) continue;
    names.emplace(keys->front().fingerprint, name);
  }
  return names;
}

// ---- what the repository serves

Result<std::string> fetch_text(SetupWork& work, const std::string& url) {
  constexpr std::string_view kFile = "file://";
  if (url.starts_with(kFile))
    return work.host.read(std::string_view(url).substr(kFile.size()), kKeyFileLimit);
  if (work.request.trust_repository_key && url.starts_with("http://"))
    return Error(Errc::Denied,
                 fmt::format("{} comes over http, so anybody on the way can replace it", url))
        .advise("use https, or name the key: --repository-key FINGERPRINT");
  const driver_package::DownloadRequest wanted{.package = {.url = url},
                                               .directory = std::string(kKeyDownloads),
                                               .checked_by_caller = true,
                                               .limit_bytes = kKeyFileLimit};
  const auto done = work.effects.download(wanted);
  auto text =
      done.ok() ? work.host.read(done->path, kKeyFileLimit) : Result<std::string>(done.error());
  GANTRY_CHECK(work.effects.remove_tree(std::string(kKeyDownloads)));
  return text;
}

// The address in a list of yum's; "" if the text is none.
std::string key_address(std::string_view text) {
  constexpr std::string_view kWord = "gpgkey=";
  for (auto line : lines(text)) {
    line = trim(line);
    if (line.starts_with(kWord)) return std::string(trim(line.substr(kWord.size())));
  }
  return "";
}

Result<Keys> fetch_keys(SetupWork& work, const std::string& url) {
  GANTRY_TRY(auto text, fetch_text(work, url));
  auto shown = url;
  if (const auto address = key_address(text); !address.empty()) {
    shown = printable(address.substr(0, 300));
    GANTRY_TRY(text, fetch_text(work, address).in(fmt::format("the key that {} names", url)));
  }
  return driver_package::parse_repository_keys(text).in(shown);
}

// ---- the refusal

std::string command_with_key(const SetupWork& work, std::string_view fingerprint) {
  const auto& request = work.request;
  std::string text = fmt::format("sudo gantry driver {} --source packages",
                                 work.before() == nullptr ? "install" : "upgrade");
  const auto add = [&](std::string_view option, std::string_view value) {
    if (!value.empty()) text += fmt::format(" {} {}", option, sys::shell_word(value));
  };
  if (!work.host.is_live()) add("--host-root", work.host.root());
  add("--version", request.version);
  if (request.flavour) add("--flavour", preflight::to_string(*request.flavour));
  add("--kernel", request.kernel);
  add("--mirror", request.mirror);
  for (const auto& key : request.repository_keys) add("--repository-key", key);
  add("--repository-key", fingerprint);
  return text;
}

Error not_trusted(const SetupWork& work, const driver_package::PackageStep& step,
                  const Keys& served) {
  std::vector<std::string> shown;
  for (const auto& key : served)
    shown.push_back(key.user.empty() ? key.fingerprint
                                     : fmt::format("{} ({})", key.fingerprint, key.user));
  const auto& named = work.request.repository_keys;
  const auto why = named.empty()
                       ? std::string(
                             "nobody named it, and who can replace the packages there can "
                             "replace the key, too")
                       : fmt::format("{} was named", fmt::join(named, ", "));
  return Error(Errc::Denied, fmt::format("{} serves the key {}, but {}", step.key_url,
                                         fmt::join(shown, ", "), why))
      .advise(fmt::format("compare the fingerprint with one that the vendor publishes at another "
                          "place, then: {}; --trust-repository-key takes the risk",
                          command_with_key(work, served.front().fingerprint)));
}

// ---- the decision

Result<TrustedKeys> trusted_keys(SetupWork& work) {
  GANTRY_TRY(auto trusted, named_keys(work));
  if (work.packages->tool == driver_package::PackageTool::Apt) return trusted;
  GANTRY_TRY(const auto known, rpm_keys(work.effects));
  for (const auto& [fingerprint, name] : known) trusted.emplace(fingerprint, "");
  return trusted;
}

Result<std::string> trusted_packets(SetupWork& work, const driver_package::PackageStep& step,
                                    const Keys& served) {
  GANTRY_TRY(const auto trusted, trusted_keys(work));
  std::string packets;
  for (const auto& key : served) {
    const auto found = trusted.find(key.fingerprint);
    if (work.request.trust_repository_key)
      packets += key.with_subkeys;
    else if (found != trusted.end())
      packets += found->second.empty() ? key.packets : found->second;
  }
  if (packets.empty()) return not_trusted(work, step, served);
  return packets;
}

}  // namespace

// A key ring that is there, and that we did not make, is the administrator's decision.
Status place_repository_key(SetupWork& work, const driver_package::PackageStep& step) {
  const bool stays = work.host.exists(step.file) && !is_own_package_file(work, step.file) &&
                     work.packages->tool == driver_package::PackageTool::Apt;
  if (stays) return {};
  GANTRY_TRY(const auto served, fetch_keys(work, step.key_url));
  GANTRY_TRY(const auto packets, trusted_packets(work, step, served));
  const bool binary = step.file.ends_with(".gpg");
  const auto content = binary ? packets : driver_package::to_armor(packets);
  return write_package_file(work, step.file, content);
}

Status import_rpm_keys(SetupWork& work, const driver_package::PackageStep& step) {
  GANTRY_TRY(const auto text, work.host.read(step.argv.back(), kKeyFileLimit));
  GANTRY_TRY(const auto keys, driver_package::parse_repository_keys(text));
  GANTRY_TRY(const auto known, rpm_keys(work.effects));
  bool any_new = false;
  for (const auto& key : keys) {
    if (known.contains(key.fingerprint)) continue;
    any_new = true;
    work.journal.target.removal.push_back({.argv = {"rpm", "-e"}, .key = key.fingerprint});
  }
  if (!any_new) return {};
  GANTRY_CHECK(save_journal(work));
  GANTRY_CHECK(work.effects.run(package_command(step.argv)));
  return {};
}

Status remove_rpm_key(SetupWork& work, const std::string& fingerprint) {
  GANTRY_TRY(const auto known, rpm_keys(work.effects));
  const auto found = known.find(fingerprint);
  if (found == known.end()) return {};
  GANTRY_CHECK(work.effects.run(package_command({"rpm", "-e", found->second})));
  return {};
}

}  // namespace gantry::driver_setup
