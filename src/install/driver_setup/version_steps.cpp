// SPDX-License-Identifier: Apache-2.0
// Steps about the files of a version.
#include "base/core/text.hpp"
#include "install/driver_package/checksum.hpp"
#include "install/driver_package/manifest.hpp"
#include "install/driver_setup/build_modules.hpp"
#include "install/driver_setup/place_files.hpp"
#include "install/driver_setup/setup_work_internal.hpp"
#include "install/driver_setup/used_versions.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

constexpr std::chrono::seconds kUnpackDeadline{900};
constexpr std::chrono::seconds kPatchDeadline{60};
constexpr std::size_t kPatchLimit = std::size_t{16} << 20;

std::string unpacking(const SetupWork& work) {
  return work.staging() + ".unpacking";
}

bool has_version(const SetupWork& work) {
  const auto& name = work.target().name;
  const auto damage =
      find_damage(work.host, work.layout.version(name), work.layout.file_list(name));
  return damage.ok() && damage->empty();
}

bool has_modules(const SetupWork& work, const std::string& kernel) {
  const auto directory = work.layout.modules(work.target().name, kernel);
  const auto damage = find_damage(work.host, directory, directory + "/files.json");
  return damage.ok() && damage->empty();
}

Result<driver_package::Manifest> read_manifest(const SetupWork& work, const std::string& unpacked) {
  GANTRY_TRY(const auto text,
             work.host.read(unpacked + "/.manifest", driver_package::kManifestLimit)
                 .in("the archive has no list of its files"));
  GANTRY_TRY(auto manifest, driver_package::parse_manifest(text).in("the archive's .manifest"));
  if (manifest.version == work.target().version) return manifest;
  return Error(Errc::Corrupt, fmt::format("the archive has the driver {}, not {}", manifest.version,
                                          work.target().version));
}

Error was_changed(const SetupWork& work, const std::string& path) {
  return Error(Errc::Denied,
               fmt::format("{} was changed while it was being installed", work.host.outside(path)))
      .advise("find out who changes it, then run the same command again");
}

// The archive, as the digest of the target names it. One that is not in a directory of our own may
// belong to a user who changes it after its digest was computed: its copy is what is run as root.
Result<std::string> verified_archive(SetupWork& work) {
  auto path = work.run_file();
  if (!path.starts_with(fmt::format("{}/", kDownloads))) {
    GANTRY_TRY(const auto original, work.host.resolve(path));
    path = work.staging() + ".run";
    GANTRY_CHECK(work.effects.copy(original, path, 0600));
  }
  GANTRY_TRY(const auto digest, driver_package::sha256_of(work.host, path));
  if (digest != work.target().digest) return was_changed(work, work.run_file());
  return path;
}

// The patch that belongs to the digest, where only root can change it.
Result<std::string> verified_patch(SetupWork& work, std::string_view text) {
  driver_package::Sha256 sum;
  sum.add(text);
  if (sum.finish() != work.target().patch_digest) return was_changed(work, work.request.patch);
  auto path = work.staging() + ".patch";
  GANTRY_CHECK(work.effects.save(path, text, 0600));
  return path;
}

Status apply_patch(SetupWork& work, const std::string& unpacked) {
  if (work.request.patch.empty()) return {};
  GANTRY_TRY(const auto text, work.host.read(work.request.patch, kPatchLimit));
  GANTRY_TRY(const auto directory,
             patch_directory(text, unpacked, source_directory(*work.target().flavour)));
  GANTRY_TRY(const auto patch, verified_patch(work, text));
  ProgramCall call{.words = {{.text = "patch"},
                             {.text = "-p1"},
                             {.text = "--batch"},
                             {.text = "-d"},
                             {.path = directory},
                             {.text = "-i"},
                             {.path = patch}},
                   .place = ProgramPlace::Tools,
                   .needs = {"patch"},
                   .deadline = kPatchDeadline};
  auto patched = work.effects.run(call);
  if (patched.ok()) return {};
  return std::move(patched)
      .error()
      .in(fmt::format("{} does not fit the source of {}", work.request.patch,
                      work.target().version))
      .advise("use a patch for this version of the driver");
}

Status unpack_into(SetupWork& work, const std::string& directory) {
  GANTRY_CHECK(work.effects.remove_tree(directory));
  GANTRY_CHECK(work.effects.make_directory(std::string(kStaging)));
  GANTRY_TRY(const auto archive, verified_archive(work));
  ProgramCall call{.words = {{.text = "sh"},
                             {.path = archive},
                             {.text = "--extract-only"},
                             {.text = "--target"},
                             {.path = directory}},
                   .place = ProgramPlace::Tools,
                   .needs = {"sh", "tar"},
                   .deadline = kUnpackDeadline};
  GANTRY_CHECK(work.effects.run(call).in("unpacking the archive"));
  GANTRY_CHECK(read_manifest(work, directory));
  return apply_patch(work, directory);
}

kernel_module::ModuleTrust trust_of(const SetupWork& work) {
  return work.facts == nullptr ? kernel_module::read_module_trust(work.host) : work.facts->trust;
}

// The preflight may have found them in our image, as Google's installer has them.
Result<kernel_module::KernelBuildDir> headers_for(const SetupWork& work,
                                                  const std::string& kernel) {
  const bool known = work.facts != nullptr && work.facts->build_release == kernel;
  if (known && work.facts->headers && work.facts->headers->in_image) return *work.facts->headers;
  return kernel_module::find_kernel_headers(work.host, kernel);
}

// Notes that the modules are of this work, so that the way back removes them.
Status begin_modules(SetupWork& work, const std::string& kernel) {
  const auto directory = work.layout.modules(work.target().name, kernel);
  if (!work.journal.placed_modules && !work.host.link_info(directory).ok()) {
    work.journal.placed_modules = true;
    GANTRY_CHECK(save_journal(work));
  }
  GANTRY_CHECK(work.effects.remove_tree(directory));  // one that is damaged
  return work.effects.make_directory(std::string(parent_directory(directory)));
}

// The links in DIR that lead through `current`.
std::vector<std::string> shown_parts(const SetupWork& work) {
  std::vector<std::string> parts;
  for (const auto part : kShownDirectories) {
    const auto inside = fmt::format("{}/{}", work.layout.version(work.target().name), part);
    if (work.host.exists(inside)) parts.emplace_back(part);
  }
  return parts;
}

}  // namespace

Status unpack(SetupWork& work) {
  if (has_version(work) || work.host.exists(work.staging())) return {};
  const auto directory = unpacking(work);
  GANTRY_CHECK(unpack_into(work, directory));
  GANTRY_CHECK(work.effects.sync(directory));
  return work.effects.rename(directory, work.staging());
}

Status place_version(SetupWork& work) {
  const auto& name = work.target().name;
  if (has_version(work)) return {};
  const auto unpacked = work.staging();
  GANTRY_TRY(const auto manifest, read_manifest(work, unpacked));
  const auto files = plan_files(manifest, *work.target().flavour);
  if (work.request.builds_modules()) GANTRY_CHECK(check_has_source(files, *work.target().flavour));
  const auto directory = work.layout.version(name);
  if (!work.journal.placed_version && !work.host.link_info(directory).ok()) {
    work.journal.placed_version = true;
    GANTRY_CHECK(save_journal(work));
  }
  GANTRY_CHECK(note_created(work, work.layout.versions()));
  GANTRY_CHECK(work.effects.make_directory(work.layout.versions()));
  GANTRY_CHECK(work.effects.remove_tree(directory));  // one that is damaged
  return place_files(work.host, files, unpacked, work.layout.partial(name), directory,
                     work.effects);
}

Status undo_place_version(SetupWork& work) {
  const auto& name = work.target().name;
  GANTRY_CHECK(work.effects.remove_tree(work.layout.partial(name)));
  if (!work.journal.placed_version) return {};
  return work.effects.remove_tree(work.layout.version(name));
}

Status build_for(SetupWork& work, const std::string& kernel) {
  if (has_modules(work, kernel)) return {};
  GANTRY_TRY(auto headers, headers_for(work, kernel));
  GANTRY_CHECK(begin_modules(work, kernel));
  ModuleBuild build{.kernel = kernel,
                    .source = work.layout.source(work.target().name),
                    .directory = fmt::format("{}/build-{}", kStaging, kernel),
                    .destination = work.layout.modules(work.target().name, kernel),
                    .headers = std::move(headers),
                    .compiler = {},
                    .jobs = work.options.jobs,
                    .key = {work.request.sign_key, work.request.sign_certificate}};
  if (work.facts != nullptr) {
    const auto built = kernel_module::with_compiler_of(work.facts->kernel, build.headers);
    build.compiler = choose_compiler(work.facts->compiler, built);
    build.uses_lld = built.uses_lld;
  }
  return build_modules(work.host, build, work.target(), trust_of(work), work.effects);
}

Status copy_for(SetupWork& work, const std::string& kernel) {
  if (has_modules(work, kernel)) return {};
  GANTRY_CHECK(begin_modules(work, kernel));
  const BuiltModules modules{.directory = work.request.modules,
                             .kernel = kernel,
                             .list_sha256 = work.request.modules_sha256,
                             .trust_without_digest = work.request.trust_modules_without_digest,
                             .staging = fmt::format("{}/modules-{}", kStaging, kernel),
                             .destination = work.layout.modules(work.target().name, kernel)};
  return copy_modules(work.host, modules, work.target(), trust_of(work), work.effects);
}

Status undo_modules(SetupWork& work, const std::string& kernel) {
  for (const auto* kind : {"build", "modules"})
    GANTRY_CHECK(work.effects.remove_tree(fmt::format("{}/{}-{}", kStaging, kind, kernel)));
  if (!work.journal.placed_modules || work.journal.placed_version) return {};
  return work.effects.remove_tree(work.layout.modules(work.target().name, kernel));
}

Status switch_version(SetupWork& work) {
  GANTRY_CHECK(
      create_link(work, work.layout.current(), fmt::format(".versions/{}", work.target().name)));
  for (const auto& part : shown_parts(work)) {
    if (is_googles(work.host, work.layout)) GANTRY_CHECK(move_aside(work, work.layout.shown(part)));
    GANTRY_CHECK(create_link(work, work.layout.shown(part), fmt::format("current/{}", part)));
  }
  return {};
}

Status undo_switch_version(SetupWork& work) {
  const auto* before = work.before();
  if (before == nullptr || !before->has_files()) return {};  // the links go with all that is new
  const auto target = fmt::format(".versions/{}", before->name);
  if (work.host.link(work.layout.current()).value_or("") == target) return {};
  GANTRY_CHECK(work.effects.make_link(work.layout.current(), target));
  return restore_loader_cache(work);
}

Status clean_up(SetupWork& work) {
  GANTRY_CHECK(work.effects.remove_tree(std::string(kStaging)));
  GANTRY_CHECK(work.effects.remove_tree(std::string(kDownloads)));
  std::vector<std::string> old;
  for (const auto& name : work.host.list(work.layout.versions()).value_or({})) {
    if (name == work.target().name || name == work.target().previous) continue;
    const bool partial = name.starts_with('.') && name.ends_with(".partial");
    if (partial) GANTRY_CHECK(work.effects.remove_tree(work.layout.version(name)));
    if (!partial && is_version_name(name)) old.push_back(name);
  }
  const auto used = versions_in_use(work.host, old);
  for (const auto& name : old) {
    const auto user = used.find(name);
    if (user == used.end())
      GANTRY_CHECK(work.effects.remove_tree(work.layout.version(name)));
    else
      work.note(fmt::format("the version {} stays for now: {}", name, describe(user->second)));
  }
  return {};
}

}  // namespace gantry::driver_setup
