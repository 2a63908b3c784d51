// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/install_record.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "base/sys/trusted.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/driver_setup/record_json_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

constexpr std::uint64_t kRecordFormat = 1;
constexpr std::size_t kRecordLimit = std::size_t{1} << 20;
constexpr std::size_t kMostCreated = 1024;
constexpr std::size_t kMostRemovalSteps = 64;
constexpr std::size_t kMostPackages = 256;

Error not_a_record(std::string_view what) {
  return {Errc::Corrupt, fmt::format("it is not a record of Gantry: {}", what)};
}

Result<std::string> absolute_path(const std::string& path) {
  const auto parts = split(path, '/');
  const bool safe = path.size() > 1 && path.size() < 4096 && path.front() == '/' &&
                    path.find('\0') == std::string::npos &&
                    std::find(parts.begin(), parts.end(), "..") == parts.end();
  if (!safe) return not_a_record("a path is not absolute");
  return path;
}

Result<RemovalStep> removal_step(const json::Value& value) {
  RemovalStep step{.argv = value["argv"].strings(),
                   .file = value["file"].string_or_empty(),
                   .content = value["content"].string_or_empty(),
                   .packages = value["packages"].strings(),
                   .list = value["list"].string_or_empty(),
                   .key = value["key"].string_or_empty()};
  for (const auto* path : {&step.file, &step.list}) {
    if (!path->empty()) GANTRY_CHECK(absolute_path(*path));
  }
  if (step.argv.empty() == step.file.empty())
    return not_a_record("a step is neither a command nor a file");
  return step;
}

Status read_name_and_version(const json::Value& value, InstallRecord& record) {
  const auto source = preflight::parse_source(value["source"].string_or_empty());
  if (!source) return not_a_record("its source is not known");
  record.source = *source;
  record.version = value["version"].string_or_empty();
  // Of packages it may be a branch, or empty until they are installed.
  const bool plain = std::all_of(record.version.begin(), record.version.end(),
                                 [](char c) { return is_digit(c) || c == '.'; });
  if (!plain || record.version.size() > 64)
    return not_a_record("its version is not one of a driver");
  const auto flavour = value["flavour"].string_or_empty();
  record.flavour = preflight::parse_flavour(flavour);
  if (!flavour.empty() && !record.flavour) return not_a_record("its flavour is not known");
  record.name = value["name"].string_or_empty();
  record.previous = value["previous"].string_or_empty();
  for (const auto* name : {&record.name, &record.previous}) {
    if (!name->empty() && !is_version_name(*name))
      return not_a_record("a version's directory has no valid name");
  }
  return {};
}

Status read_lists(const json::Value& value, InstallRecord& record) {
  record.created = value["created"].strings();
  if (record.created.size() > kMostCreated) return not_a_record("it has too many paths");
  for (const auto& path : record.created) GANTRY_CHECK(absolute_path(path));
  record.moved_aside = value["movedAside"].strings();
  for (const auto& path : record.moved_aside) GANTRY_CHECK(absolute_path(path));
  if (value["removal"].size() > kMostRemovalSteps) return not_a_record("it has too many commands");
  for (const auto one : value["removal"]) {
    GANTRY_TRY(auto step, removal_step(one));
    record.removal.push_back(std::move(step));
  }
  record.packages = value["packages"].strings();
  if (record.packages.size() > kMostPackages) return not_a_record("it has too many packages");
  record.repository_keys = value["repositoryKeys"].strings();
  if (record.repository_keys.size() > kMostPackages) return not_a_record("it has too many keys");
  record.kernel_modules = value["kernelModules"].strings();
  if (record.kernel_modules.size() > kMostPackages) return not_a_record("it has too many modules");
  return {};
}

}  // namespace

std::string describe(const InstallRecord& record) {
  if (record.version.empty()) return "the distribution's choice";
  if (!record.flavour) return record.version;
  return fmt::format("{} ({})", record.version, preflight::to_string(*record.flavour));
}

std::string install_command(const InstallRecord& record) {
  std::string text = "sudo gantry driver install";
  const auto add = [&](std::string_view option, std::string_view value) {
    if (!value.empty()) text += fmt::format(" {} {}", option, sys::shell_word(value));
  };
  if (record.source != preflight::Source::Run) add("--source", to_string(record.source));
  if (!record.url.empty())
    add("--url", record.url);
  else if (record.has_files())
    add("--run", record.archive.path);
  else
    add("--version", record.version);
  for (const auto& key : record.repository_keys) add("--repository-key", key);
  add("--sha256", record.digest);
  if (record.source == preflight::Source::Precompiled) text += " --modules DIR";
  if (!record.patch_digest.empty()) text += " --patch FILE";
  if (record.flavour) add("--flavour", preflight::to_string(*record.flavour));
  if (record.has_files() && record.directory != preflight::kDefaultDirectory)
    add("--directory", record.directory);
  return text;
}

void write_record(json::Writer& out, const InstallRecord& record) {
  out.object([&] {
    out.member("format", kRecordFormat);
    out.member("source", preflight::to_string(record.source));
    out.member("version", record.version);
    out.member("flavour", record.flavour ? preflight::to_string(*record.flavour) : "");
    out.member("digest", record.digest);
    out.member("patchDigest", record.patch_digest);
    out.member("url", record.url);
    out.object("archive", [&] {
      out.member("path", record.archive.path);
      out.member("bytes", record.archive.bytes);
      out.member("modifiedNs", record.archive.modified_ns);
    });
    out.member("directory", record.directory);
    out.member("name", record.name);
    out.member("previous", record.previous);
    out.array("created", record.created);
    out.array("movedAside", record.moved_aside);
    out.member("addedToLoaderConfig", record.added_to_loader_config);
    out.member("setFirmwarePath", record.set_firmware_path);
    out.member("firmwarePathBefore", record.firmware_path_before);
    out.member("madeCdi", record.made_cdi);
    out.array("removal", record.removal, [&](const RemovalStep& step) {
      out.object([&] {
        out.array("argv", step.argv);
        out.member("file", step.file);
        out.member("content", step.content);
        out.array("packages", step.packages);
        out.member("list", step.list);
        out.member("key", step.key);
      });
    });
    out.array("packages", record.packages);
    out.array("repositoryKeys", record.repository_keys);
    out.array("kernelModules", record.kernel_modules);
  });
}

Result<InstallRecord> read_record_value(const json::Value& value) {
  if (value["format"].u64() != kRecordFormat) return not_a_record("its format is not 1");
  InstallRecord record;
  GANTRY_CHECK(read_name_and_version(value, record));
  record.digest = value["digest"].string_or_empty();
  record.patch_digest = value["patchDigest"].string_or_empty();
  record.url = value["url"].string_or_empty();
  record.archive = {.path = value["archive"]["path"].string_or_empty(),
                    .bytes = value["archive"]["bytes"].u64().value_or(0),
                    .modified_ns = value["archive"]["modifiedNs"].i64().value_or(0)};
  record.directory = value["directory"].string_or_empty();
  if (!check_directory(record.directory).ok()) return not_a_record("its directory is not valid");
  GANTRY_CHECK(read_lists(value, record));
  record.added_to_loader_config = value["addedToLoaderConfig"].boolean().value_or(false);
  record.set_firmware_path = value["setFirmwarePath"].boolean().value_or(false);
  record.firmware_path_before = value["firmwarePathBefore"].string_or_empty();
  record.made_cdi = value["madeCdi"].boolean().value_or(false);
  return record;
}

std::string to_json(const InstallRecord& record) {
  json::Writer out(json::Layout::Indented);
  write_record(out, record);
  return std::move(out).text() + "\n";
}

Result<InstallRecord> parse_record(std::string text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::move(text)));
  return read_record_value(document.root());
}

Result<std::optional<InstallRecord>> read_record(const sys::Host& host) {
  auto text = sys::read_trusted(host, kInstalledPath, kRecordLimit);
  if (!text.ok() && text.error().code() == Errc::NotFound) return std::optional<InstallRecord>();
  if (!text.ok()) return std::move(text).error().in("reading what is installed");
  auto record = parse_record(*std::move(text));
  if (record.ok()) return std::optional(*std::move(record));
  const auto shown = host.outside(kInstalledPath);
  return Error(Errc::Corrupt, fmt::format("{}: {}", shown, record.error().cause()))
      .advise(fmt::format("move it aside and install again: sudo mv {0} {0}.damaged",
                          sys::shell_word(shown)));
}

}  // namespace gantry::driver_setup
