// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/install_journal.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/shell_command.hpp"
#include "base/sys/trusted.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/driver_setup/record_json_internal.hpp"
#include "install/kernel_module/module_order.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gantry::driver_setup {
namespace {

constexpr std::uint64_t kJournalFormat = 1;
constexpr std::size_t kJournalBytes = std::size_t{2} << 20;
constexpr std::size_t kMostSteps = 64;
constexpr int kLockTries = 8;

Error not_a_journal(std::string_view what) {
  return {Errc::Corrupt, fmt::format("it is not a journal of Gantry: {}", what)};
}

// A kernel's release becomes part of a path.
bool is_release(std::string_view text) {
  return text.size() < 128 && text.find('/') == text.npos && text != "." && text != "..";
}

Result<InstallStep> read_step(const json::Value& value) {
  const auto kind = parse_step_kind(value["kind"].string_or_empty());
  if (!kind) return not_a_journal("a step is not known");
  auto subject = value["subject"].string_or_empty();
  if (!is_release(subject)) return not_a_journal("the subject of a step is not valid");
  return InstallStep{.kind = *kind, .subject = std::move(subject)};
}

Status read_steps(const json::Value& root, InstallJournal& journal) {
  if (root["steps"].size() > kMostSteps) return not_a_journal("it has too many steps");
  for (const auto value : root["steps"]) {
    GANTRY_TRY(auto step, read_step(value));
    journal.steps.push_back(std::move(step));
  }
  const auto step = root["step"].u64();
  if (!step || *step > kMostSteps) return not_a_journal("its step is missing");
  journal.step = *step;
  return {};
}

// The process that has the lock, as it wrote itself down; "" if it did not.
Status read_modules(const json::Value& root, InstallJournal& journal) {
  constexpr std::size_t kMostUnloadedModules = 64;
  if (root["unloadedModules"].size() > kMostUnloadedModules)
    return not_a_journal("it has too many modules");
  for (const auto one : root["unloadedModules"]) {
    UnloadedModule module{.name = one["name"].string_or_empty(),
                          .path = one["path"].string_or_empty()};
    if (!kernel_module::is_driver_module(module.name))
      return not_a_journal("a module is not one of the driver");
    journal.unloaded_modules.push_back(std::move(module));
  }
  return {};
}

std::string lock_holder(int fd) {
  std::array<char, 64> text{};
  const auto size = ::pread(fd, text.data(), text.size(), 0);
  const auto pid =
      parse_u64(trim(std::string_view(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0)));
  return pid ? fmt::format(" (process {})", *pid) : "";
}

Error is_locked(int fd) {
  return Error(Errc::Busy, fmt::format("another gantry{} is changing the driver of this machine",
                                       lock_holder(fd)))
      .advise("wait until it has ended: gantry driver status");
}

// For the sentence of those who find the lock taken. It may be missing.
void write_holder(int fd) {
  const auto pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd, 0) == 0) static_cast<void>(::pwrite(fd, pid.data(), pid.size(), 0));
}

}  // namespace

std::string to_json(const InstallJournal& journal) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("format", kJournalFormat);
    out.member("command", journal.command);
    out.key("target");
    write_record(out, journal.target);
    if (journal.before) {
      out.key("before");
      write_record(out, *journal.before);
    }
    out.array("steps", journal.steps, [&](const InstallStep& step) {
      out.object([&] {
        out.member("kind", to_string(step.kind));
        out.member("subject", step.subject);
      });
    });
    out.member("kernel", journal.kernel);
    out.member("step", journal.step);
    out.member("backwards", journal.backwards);
    out.member("placedVersion", journal.placed_version);
    out.member("placedModules", journal.placed_modules);
    out.member("unloaded", journal.unloaded);
    out.array("unloadedModules", journal.unloaded_modules, [&](const UnloadedModule& module) {
      out.object([&] {
        out.member("name", module.name);
        out.member("path", module.path);
      });
    });
    out.member("notedPackages", journal.noted_packages);
    out.array("services", journal.services);
    out.array("licenceFiles", journal.licence_files);
  });
  return std::move(out).text() + "\n";
}

Result<InstallJournal> parse_install_journal(std::string text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::move(text)));
  const auto root = document.root();
  if (root["format"].u64() != kJournalFormat) return not_a_journal("its format is not 1");
  InstallJournal journal;
  journal.command = root["command"].string_or_empty();
  if (journal.command != "install" && journal.command != "remove")
    return not_a_journal("it is neither of an installation nor of a removal");
  GANTRY_TRY(journal.target, read_record_value(root["target"]));
  if (root["before"]) {
    GANTRY_TRY(journal.before, read_record_value(root["before"]));
  }
  GANTRY_CHECK(read_steps(root, journal));
  journal.kernel = root["kernel"].string_or_empty();
  if (!is_release(journal.kernel)) return not_a_journal("its kernel is not valid");
  journal.backwards = root["backwards"].boolean().value_or(false);
  journal.placed_version = root["placedVersion"].boolean().value_or(false);
  journal.placed_modules = root["placedModules"].boolean().value_or(false);
  journal.unloaded = root["unloaded"].boolean().value_or(false);
  GANTRY_CHECK(read_modules(root, journal));
  journal.noted_packages = root["notedPackages"].boolean().value_or(false);
  journal.services = root["services"].strings();
  journal.licence_files = root["licenceFiles"].strings();
  return journal;
}

Result<std::optional<InstallJournal>> read_install_journal(const sys::Host& host) {
  auto text = sys::read_trusted(host, kJournalPath, kJournalBytes);
  if (!text.ok() && text.error().code() == Errc::NotFound) return std::optional<InstallJournal>();
  if (!text.ok()) return std::move(text).error().in("reading the journal");
  auto journal = parse_install_journal(*std::move(text));
  if (journal.ok()) return std::optional(*std::move(journal));
  const auto shown = host.outside(kJournalPath);
  return Error(Errc::Corrupt, fmt::format("{}: {}", shown, journal.error().cause()))
      .advise(fmt::format("see what is loaded with `gantry driver status`, move it aside, then "
                          "install again: sudo mv {0} {0}.damaged",
                          sys::shell_word(shown)));
}

Result<sys::UniqueFd> lock_driver_setup(const sys::Host& host) {
  const std::string directory(parent_directory(kLockPath));
  const auto shown = host.outside(kLockPath);
  for (int tries = 0; tries < kLockTries; ++tries) {
    GANTRY_CHECK(
        sys::real_kernel()->make_directory(host, directory).in("locking the installation"));
    GANTRY_TRY(const auto above, host.open(directory, O_RDONLY | O_DIRECTORY));
    sys::UniqueFd lock(
        ::openat(above.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock.valid()) return Error::sys(errno, fmt::format("open {}", shown));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return Error::sys(errno, fmt::format("flock {}", shown));
      return is_locked(lock.get());
    }
    // A removal deletes the file while it has the lock: only the file that has the name counts.
    const auto named = host.open(kLockPath, O_RDONLY | O_NOFOLLOW);
    if (!named.ok() || !sys::same_file(named->get(), lock.get())) continue;
    write_holder(lock.get());
    return lock;
  }
  return Error(Errc::Busy, "another gantry removes the driver of this machine");
}

}  // namespace gantry::driver_setup
