// SPDX-License-Identifier: Apache-2.0
// Steps about files of the machine outside the driver's directory.
#include "base/core/text.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_setup/boot_files.hpp"
#include "install/driver_setup/setup_work_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::driver_setup {
namespace {

constexpr std::string_view kLoaderDropIn = "/etc/ld.so.conf.d/gantry-driver.conf";
constexpr std::string_view kLoaderConfig = "/etc/ld.so.conf";
constexpr std::string_view kLicenceConfig = "/etc/nvidia/gridd.conf";
constexpr std::string_view kTokenDirectory = "/etc/nvidia/ClientConfigToken";
constexpr std::size_t kConfigLimit = std::size_t{256} << 10;
constexpr std::chrono::seconds kLdconfigDeadline{120};
constexpr unsigned kTokenMode = 0744;  // as NVIDIA's manual asks for

bool has_ldconfig(const sys::Host& host) {
  constexpr std::array<std::string_view, 4> kPrograms{"/sbin/ldconfig", "/usr/sbin/ldconfig",
                                                      "/bin/ldconfig", "/usr/bin/ldconfig"};
  return std::any_of(kPrograms.begin(), kPrograms.end(),
                     [&](std::string_view program) { return host.exists(program); });
}

// /etc of an immutable system: what belongs there is left out, and the driver works without it.
bool is_read_only(const Error& error) {
  return error.sys_errno() == EROFS || contains(error.text(), "Read-only file system");
}

Status run_ldconfig(SetupWork& work) {
  const ProgramCall call{
      .words = {{.text = "ldconfig"}}, .needs = {}, .deadline = kLdconfigDeadline};
  GANTRY_CHECK(work.effects.run(call));
  return {};
}

// Where nothing can be written, nothing of ours is in the cache.
Status run_ldconfig_if_writable(SetupWork& work) {
  auto done = run_ldconfig(work);
  return !done.ok() && is_read_only(done.error()) ? Status() : done;
}

bool has_line(std::string_view text, std::string_view wanted) {
  const auto all = lines(text);
  return std::any_of(all.begin(), all.end(),
                     [&](std::string_view line) { return trim(line) == wanted; });
}

std::string without_line(std::string_view text, std::string_view unwanted) {
  std::string kept;
  for (const auto line : lines(text)) {
    if (trim(line) != unwanted) kept += fmt::format("{}\n", line);
  }
  return kept;
}

// "include /etc/ld.so.conf.d/*.conf", or without "/etc/", as on Red Hat and SUSE.
bool includes_drop_ins(std::string_view text) {
  const auto all = lines(text);
  return std::any_of(all.begin(), all.end(), [](std::string_view line) {
    line = trim(line);
    return line.starts_with("include") && contains(line, "ld.so.conf.d/");
  });
}

// A configuration that includes no directory gets the line itself.
Status add_to_loader_config(SetupWork& work) {
  const auto text = work.host.read(kLoaderConfig, kConfigLimit);
  const auto line = work.layout.lib64();
  if (!text.ok() || includes_drop_ins(*text) || has_line(*text, line)) return {};
  work.journal.target.added_to_loader_config = true;
  GANTRY_CHECK(save_journal(work));
  const auto* end = text->empty() || text->ends_with('\n') ? "" : "\n";
  return work.effects.save(std::string(kLoaderConfig), fmt::format("{}{}{}\n", *text, end, line),
                           0644);
}

Status remove_from_loader_config(SetupWork& work) {
  const auto text = work.host.read(kLoaderConfig, kConfigLimit);
  if (!work.target().added_to_loader_config || !text.ok() || !has_line(*text, work.layout.lib64()))
    return {};
  return work.effects.save(std::string(kLoaderConfig), without_line(*text, work.layout.lib64()),
                           0644);
}

std::string backup_of(std::string_view path) {
  return fmt::format("{}/licence-{}", kStaging, base_name(path));
}

// The old file stays in the staging directory until the work has ended.
Status replace_licence_file(SetupWork& work, const std::string& from, const std::string& to,
                            unsigned mode) {
  GANTRY_TRY(const auto content, work.host.read(from, kConfigLimit));
  const auto old = work.host.read(to, kConfigLimit);
  if (old.ok() && *old == content) return {};
  auto& replaced = work.journal.licence_files;
  const bool noted = std::find(replaced.begin(), replaced.end(), to) != replaced.end();
  if (old.ok() && !noted) {
    GANTRY_CHECK(work.effects.save(backup_of(to), *old, 0600));
    replaced.push_back(to);
    GANTRY_CHECK(save_journal(work));
  } else {
    GANTRY_CHECK(note_created(work, to));
  }
  return work.effects.save(to, content, mode);
}

Status add_to_loader_cache(SetupWork& work) {
  GANTRY_CHECK(add_to_loader_config(work));
  GANTRY_CHECK(create_file(work, std::string(kLoaderDropIn), work.layout.lib64() + "\n", 0644));
  return run_ldconfig(work);
}

// People and services call nvidia-smi by its name alone.
void show_program(SetupWork& work) {
  constexpr std::string_view kShownProgram = "/usr/local/bin/nvidia-smi";
  if (work.host.exists("/usr/bin/nvidia-smi") || !work.host.exists(parent_directory(kShownProgram)))
    return;
  const auto made =
      create_link(work, std::string(kShownProgram), work.layout.bin() + "/nvidia-smi");
  if (!made.ok())
    work.note(fmt::format("nvidia-smi is in {} only: {}", work.layout.bin(), made.error().cause()));
}

std::string google_cache_text(const std::string& kernel, const std::string& version) {
  return fmt::format("CACHE_KERNEL_VERSION={}\nCACHE_NVIDIA_DRIVER_VERSION={}\n", kernel, version);
}

bool is_new(const SetupWork& work, std::string_view path) {
  const auto created = newly_created(work.journal);
  return std::find(created.begin(), created.end(), path) != created.end();
}

}  // namespace

Status place_licence(SetupWork& work) {
  const auto& request = work.request;
  if (!request.gridd_conf.empty())
    GANTRY_CHECK(replace_licence_file(work, request.gridd_conf, std::string(kLicenceConfig), 0644));
  if (request.client_token.empty()) return {};
  const auto to = fmt::format("{}/{}", kTokenDirectory, base_name(request.client_token));
  return replace_licence_file(work, request.client_token, to, kTokenMode);
}

Status undo_licence(SetupWork& work) {
  for (const auto& path : work.journal.licence_files) {
    const auto old = work.host.read(backup_of(path), kConfigLimit);
    if (!old.ok()) continue;
    const bool token = path.starts_with(kTokenDirectory);
    GANTRY_CHECK(work.effects.save(path, *old, token ? kTokenMode : 0644));
  }
  return {};
}

Status update_loader_cache(SetupWork& work) {
  if (!has_ldconfig(work.host)) {
    work.note(
        fmt::format("this machine has no ldconfig: programs outside of containers find the "
                    "libraries only with LD_LIBRARY_PATH={}",
                    work.layout.lib64()));
    return {};
  }
  const auto done = add_to_loader_cache(work);
  if (!done.ok() && !is_read_only(done.error())) return done;
  if (!done.ok())
    work.note(
        fmt::format("/etc cannot be written to: programs outside of containers find the libraries "
                    "only with LD_LIBRARY_PATH={}",
                    work.layout.lib64()));
  show_program(work);
  return {};
}

Status restore_loader_cache(SetupWork& work) {
  if (!has_ldconfig(work.host) || !work.host.exists(kLoaderDropIn)) return {};
  return run_ldconfig_if_writable(work);
}

Status undo_loader_cache(SetupWork& work) {
  if (!has_ldconfig(work.host)) return {};
  if (is_new(work, kLoaderDropIn)) {
    GANTRY_CHECK(remove_from_loader_config(work));
    GANTRY_CHECK(work.effects.remove(std::string(kLoaderDropIn)));
  }
  return run_ldconfig_if_writable(work);
}

// Other programs of Google's nodes read it, so a file of Google's is kept aside for the removal.
Status write_google_cache(SetupWork& work) {
  const auto path = work.layout.google_cache();
  const auto& created = work.target().created;
  if (std::find(created.begin(), created.end(), path) == created.end())
    GANTRY_CHECK(move_aside(work, path));
  GANTRY_CHECK(note_created(work, path));
  return work.effects.save(path, google_cache_text(work.journal.kernel, work.target().version),
                           0644);
}

Status undo_google_cache(SetupWork& work) {
  const auto path = work.layout.google_cache();
  const auto* before = work.before();
  if (before == nullptr || is_new(work, path)) return {};  // it goes with all that was created
  return work.effects.save(path, google_cache_text(work.journal.kernel, before->version), 0644);
}

Status verify_target(SetupWork& work) {
  const auto loaded = procfs::read_version(work.host);
  // Only the packages knew which version of the branch there is.
  if (!work.target().has_files() && loaded.ok()) work.journal.target.version = loaded->version;
  work.verified = verify(work.host, work.target(), VerifyDepth::Installation, &work.effects);
  for (const auto& item : work.verified.items) {
    if (item.state == VerifyState::Note) work.note(item.sentence);
  }
  return first_failure(work.verified);
}

Status keep_at_boot(SetupWork& work) {
  const auto reason = reason_against_program(work.host, work.options.program);
  if (!reason.empty()) {
    work.note(
        fmt::format("nothing loads the driver at boot, because root would run {}, and {}: install "
                    "gantry below /usr, then run the same command again",
                    work.options.program, reason));
    return {};
  }
  for (const auto& file : boot_files(work.host, work.options.program)) {
    auto made = file.link.empty() ? create_file(work, file.path, file.content, file.mode)
                                  : create_link(work, file.path, file.link);
    if (made.ok()) continue;
    if (is_read_only(made.error()) && file.path.starts_with("/usr/")) {
      work.note(fmt::format("{} cannot be written: a new kernel gets its modules when it boots",
                            file.path));
      continue;
    }
    if (is_read_only(made.error())) {
      work.note(
          "/etc cannot be written to, so nothing loads the driver at boot: run `gantry driver "
          "install` with the same options after each boot, as a DaemonSet does");
      return {};
    }
    if (made.error().code() != Errc::Exists) return made;
    work.note(made.error().text());  // the administrator's own
  }
  return {};
}

Status record_target(SetupWork& work) {
  if (!work.target().made_cdi && !work.host.exists(kSpecificationPath)) {
    work.journal.target.made_cdi = true;
    GANTRY_CHECK(save_journal(work));
  }
  return work.effects.save(std::string(kInstalledPath), to_json(work.target()), 0600);
}

Status undo_record(SetupWork& work) {
  const auto* before = work.before();
  if (before == nullptr) return work.effects.remove(std::string(kInstalledPath));
  return work.effects.save(std::string(kInstalledPath), to_json(*before), 0600);
}

// Containers get the driver by it. The driver works without it, so a failure is not undone.
Status refresh_cdi(SetupWork& work) {
  const auto done = work.effects.refresh_cdi();
  if (!done.ok())
    work.note(
        fmt::format("containers do not get this driver until `sudo gantry cdi refresh` "
                    "succeeds: {}",
                    done.error().text()));
  return {};
}

}  // namespace gantry::driver_setup
