// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/shim/shim_create.hpp"

#include "base/core/text.hpp"
#include "container/oci/apply.hpp"
#include "container/oci/state.hpp"
#include "container/rootfs/loader_config.hpp"
#include "container/runtime/injection/container_record.hpp"
#include "container/runtime/injection/low_level_runtime.hpp"
#include "container/runtime/shim/config_file.hpp"
#include "container/runtime/shim/volumes.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <iterator>

namespace gantry::runtime {
namespace {

std::string absolute(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  if (path.starts_with('/') || ::getcwd(buffer.data(), buffer.size()) == nullptr) return path;
  return path.empty() ? std::string(buffer.data()) : fmt::format("{}/{}", buffer.data(), path);
}

void append(std::vector<std::string>& to, std::vector<std::string> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

loader::HostVersions versions_for_compat(const Injection& injection,
                                         const config::Settings& settings) {
  if (settings.features.disable_cuda_compat_lib_hook ||
      config::has_disabled_hook(settings, "enable-cuda-compat") ||
      settings.runtime.legacy_cuda_compat_mode == "disabled") {
    return {};
  }
  return {.driver = injection.driver_version, .cuda = injection.cuda_version};
}

Status change_root(const rootfs::Root& root, const Volumes& volumes, const Injection& injection,
                   const config::Settings& settings, std::vector<std::string>& notes) {
  // We must not change its files.
  if (rootfs::is_host_root(root)) {
    return Error(Errc::Unsupported, "the container's root is the machine's own root");
  }
  if (const auto volume = volumes.over(rootfs::kLoaderCache); !volume.empty()) {
    return Error(Errc::Unsupported,
                 fmt::format("{} will be in the volume at {}", rootfs::kLoaderCache, volume));
  }
  GANTRY_TRY(const auto outcome,
             rootfs::configure_loader(root, injection.edits.libraries,
                                      {.host = versions_for_compat(injection, settings)}));
  notes.insert(notes.end(), outcome.notes.begin(), outcome.notes.end());
  if (outcome.compat) notes.push_back(outcome.compat->why);
  for (const auto& file : injection.edits.files) {
    if (file.path == rootfs::kGantryConf) continue;  // configure_loader() writes its own
    GANTRY_CHECK(root.put_file(file.path, file.content, file.mode));
  }
  return {};
}

Status mount_instead(Injector& injector, const Error& why, Injection& injection) {
  auto hooks = std::move(injection.edits.hooks);  // none of them is for the loader
  GANTRY_TRY(injection.edits,
             injector.edits_with(injection.decision.request, plan::Flavour::NoHooks));
  injection.edits.hooks = std::move(hooks);
  injection.flavour = plan::Flavour::NoHooks;
  injection.notes.push_back(
      fmt::format("the image's loader cache is unchanged ({}); the libraries are mounted in its "
                  "loader's default directories",
                  why.text()));
  return {};
}

// Adds the libraries to the image's loader cache, or by mounts if the cache cannot be changed.
// Removes mounts whose mount points would be created in a volume or cannot be created.
Status fit_to_root(Injector& injector, const std::string& bundle, const oci::Container& container,
                   const config::Settings& settings, Injection& injection) {
  if (injection.edits.empty()) return {};
  const bool by_cache =
      injection.flavour == plan::Flavour::Shim && !injection.edits.libraries.empty();
  const auto root = rootfs::Root::at(oci::root_path(bundle, container.root));
  if (!root.ok()) return by_cache ? mount_instead(injector, root.error(), injection) : Status();
  const Volumes volumes(*root, container.mounts, bundle);
  if (by_cache) {
    const auto changed = change_root(*root, volumes, injection, settings, injection.notes);
    if (!changed.ok()) GANTRY_CHECK(mount_instead(injector, changed.error(), injection));
  }
  Volumes::VolumeNotes remarks;
  GANTRY_CHECK(volumes.remove_impossible_mounts(injection.edits.mounts, remarks));
  append(injection.notes, std::move(remarks.notes));
  append(injection.decision.warnings, std::move(remarks.warnings));
  return {};
}

// The directory in which runc and crun keep the state of a container.
std::string state_directory(const CreateContext& context) {
  const auto name = context.low_level.substr(context.low_level.rfind('/') + 1);
  std::string root = context.line.root;
  if (root.empty()) {
    const char* own = ::geteuid() == 0 ? nullptr : std::getenv("XDG_RUNTIME_DIR");
    root = fmt::format("{}/{}", own != nullptr ? own : "/run", name);
  }
  return fmt::format("{}/{}", absolute(root), context.line.id);
}

ContainerRecord record_of(const CreateContext& context, const std::string& bundle,
                          const Injection& injection) {
  ContainerRecord record{
      .id = context.line.id,
      .bundle = bundle,
      .state = state_directory(context),
      .flavour = injection.edits.empty() ? "" : std::string(to_string(injection.flavour)),
      .asked = injection.decision.asked,
      .decided = injection.decision.reasons,
      .notes = injection.notes,
      .edits = injection.edits};
  record.notes.insert(record.notes.end(), injection.decision.warnings.begin(),
                      injection.decision.warnings.end());
  return record;
}

std::string classic_hook(const config::Settings& settings) {
  const auto& named = settings.hook.path;
  if (named.starts_with('/') && ::access(named.c_str(), X_OK) == 0) return named;
  auto beside = own_program_path("nvidia-container-runtime-hook");
  return beside.empty() ? "/usr/bin/nvidia-container-runtime-hook" : beside;
}

std::vector<std::string> details_of(const Injection& injection) {
  const auto& decision = injection.decision;
  std::vector<std::string> details;
  for (const auto* sentences : {&decision.asked, &decision.reasons, &injection.notes}) {
    details.insert(details.end(), sentences->begin(), sentences->end());
  }
  return details;
}

Result<std::string> new_config(const CreateContext& context, const json::Document& config,
                               const Injection& injection) {
  if (context.mode == ShimMode::Inject) return oci::apply(config, injection.edits);
  if (injection.decision.request.is_empty()) return config.text();
  return oci::add_classic_hook(config, classic_hook(context.surroundings.settings));
}

}  // namespace

std::string config_path_of(const CommandLine& line) {
  auto name = line.config.empty() ? std::string("config.json") : line.config;
  if (name.starts_with('/')) return name;
  return fmt::format("{}/{}", absolute(line.bundle), name);
}

Result<CreateResult> prepare_create(const CreateContext& context) {
  const auto& around = context.surroundings;
  GANTRY_TRY(const auto file, ConfigFile::read(config_path_of(context.line)));
  GANTRY_TRY(
      const auto container,
      oci::parse_container(file.document(), around.settings.gantry.pod_cgroups).in(file.path()));
  Injector injector(around);
  GANTRY_TRY(auto decision, injector.decide(container));
  GANTRY_TRY(auto injection, injector.plan(std::move(decision), container));
  const auto bundle = context.line.bundle.empty() && !context.line.config.empty()
                          ? std::string(parent_directory(file.path()))
                          : absolute(context.line.bundle);
  if (context.mode == ShimMode::Inject) {
    GANTRY_CHECK(fit_to_root(injector, bundle, container, around.settings, injection));
  }
  GANTRY_TRY(const auto text, new_config(context, file.document(), injection));
  GANTRY_CHECK(file.replace(text));
  CreateResult created{.changed = text != file.document().text(),
                       .warnings = injection.decision.warnings,
                       .details = details_of(injection)};
  if (!injection.decision.asked.empty()) {
    // The container works without the record; only `gantry explain` knows less.
    const auto written = write_container_record(around.host, record_of(context, bundle, injection));
    if (!written.ok()) created.warnings.push_back(written.error().text());
  }
  return created;
}

}  // namespace gantry::runtime
