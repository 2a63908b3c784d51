// SPDX-License-Identifier: Apache-2.0
#include "container/engines/journal.hpp"

#include "base/core/text.hpp"
#include "base/sys/replace_file.hpp"
#include "base/sys/shell_command.hpp"
#include "container/engines/change_plan_internal.hpp"
#include "container/engines/journal_file_internal.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace gantry::engines {
namespace {

// The directory of drop-ins (crio.conf.d, hooks.d) that a file is in, at any depth; "" if none.
std::string drop_ins_of(const std::string& path) {
  for (std::string_view at = parent_directory(path); at != "/"; at = parent_directory(at)) {
    if (at.ends_with(".d")) return std::string(at);
  }
  return "";
}

class DiskFileWriter : public FileWriter {
 public:
  Status replace(const std::string& path, std::string_view content, unsigned mode) override {
    struct stat before {};
    const bool there = ::stat(path.c_str(), &before) == 0;
    // CRI-O reads every file of its directory, so nothing else may ever be there.
    const auto drop_ins = drop_ins_of(path);
    GANTRY_CHECK(drop_ins.empty() ? sys::replace_file(path, content, mode)
                                  : sys::replace_drop_in(drop_ins, path, content, mode));
    // Keeps the file's owner if we may set it; otherwise the file is ours and still readable.
    if (there && (before.st_uid != ::geteuid() || before.st_gid != ::getegid())) {
      (void)!::chown(path.c_str(), before.st_uid, before.st_gid);
    }
    return {};
  }

  Status remove(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove(path, error);
    const bool stays = error == std::errc::directory_not_empty;
    if (error && !stays) return Error::sys(error.value(), fmt::format("remove {}", path));
    return {};
  }

  Status make_directories(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return Error::sys(error.value(), fmt::format("make {}", path));
    return {};
  }
};

// Allows one configure or undo at a time, also between processes; the kernel releases the lock when
// we die.
Result<sys::UniqueFd> lock(const sys::Host& host, FileWriter& files) {
  const auto directory = host.outside(kJournalsDirectory);
  GANTRY_CHECK(files.make_directories(directory).in(
      "writing the journal, without which gantry changes nothing"));
  sys::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", directory));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Error(Errc::Busy, "another gantry is configuring an engine; try again in a moment");
    }
    return Error::sys(errno, fmt::format("lock {}", directory));
  }
  return fd;
}

bool says_nothing(const JournalFile& file, const std::string& text) {
  if (file.format != Format::Toml) return text.find_first_not_of("{} \t\r\n") == std::string::npos;
  const auto document = toml_edit::Document::parse(text);
  return document.ok() && (document->members({}).empty() ||
                           document->members({}) == std::vector<std::string>{"version"});
}

// A file that the partner's journal has, too, keeps the partner's text until that is undone.
Status hand_over(const sys::Host& host, const JournalFile& file, const JournalFile& theirs,
                 Engine partner, FileWriter& files, JournalResult& outcome) {
  outcome.notes.push_back(
      fmt::format("{}: stays, because {} reads it, too; `sudo gantry runtime configure{} "
                  "--runtime={} --undo` removes it",
                  file.path, to_string(partner), sys::root_flag(host), to_string(partner)));
  GANTRY_TRY(const auto now, read_optional(host, file.path));
  if (!now || theirs.written.empty() || *now == theirs.written.back()) return {};
  if (std::find(file.written.begin(), file.written.end(), *now) == file.written.end()) return {};
  outcome.files.push_back(
      fmt::format("{}: has the text for {} again", file.path, to_string(partner)));
  return files.replace(host.outside(file.path), theirs.written.back(), file.mode);
}

Status restore(const sys::Host& host, const JournalFile& file, FileWriter& files,
               JournalResult& outcome) {
  GANTRY_TRY(const auto now, read_optional(host, file.path));
  const auto outside = host.outside(file.path);
  if (now == file.before) return {};
  if (!now) {
    outcome.notes.push_back(
        fmt::format("{}: was removed since and is not created again", file.path));
    return {};
  }
  if (std::find(file.written.begin(), file.written.end(), *now) != file.written.end()) {
    if (!file.before) {
      outcome.files.push_back(fmt::format("{}: removed, it did not exist before", file.path));
      return files.remove(outside);
    }
    outcome.files.push_back(fmt::format("{}: restored, byte for byte", file.path));
    return files.replace(outside, *file.before, file.mode);
  }
  GANTRY_TRY(const auto rest, remove_keys(file, *now, outcome.notes));
  if (rest == *now) return {};
  if (!file.before && says_nothing(file, rest)) {
    outcome.files.push_back(fmt::format("{}: removed, it contained only our keys", file.path));
    return files.remove(outside);
  }
  outcome.files.push_back(
      fmt::format("{}: was changed since, so only our keys are removed", file.path));
  return files.replace(outside, rest, file.mode);
}

}  // namespace

std::unique_ptr<FileWriter> disk_file_writer() {
  return std::make_unique<DiskFileWriter>();
}

Result<JournalResult> apply(const sys::Host& host, const ChangePlan& plan, FileWriter& files) {
  JournalResult outcome;
  GANTRY_TRY(const bool joins, joins_partner(host, plan));
  if (!plan.changes() && !joins) return outcome;
  GANTRY_TRY(const auto held, lock(host, files));
  GANTRY_TRY(auto loaded, load_journal(host, plan.engine).in("the journal"));
  EngineJournal record = std::move(loaded).value_or(EngineJournal{.engine = plan.engine});
  GANTRY_TRY(const auto partner, load_partner(host, plan.engine));
  for (const auto& change : plan.files) {
    GANTRY_TRY(const auto now, read_optional(host, change.path));
    if (now != change.before) {
      return Error(Errc::Busy,
                   fmt::format("{} was changed in the meantime; try again", change.path));
    }
    GANTRY_CHECK(record_change(host, change, partner, record));
  }
  // A longer journal could not be read again, and nothing could be undone.
  if (record.files.size() > kFilesKept) {
    return Error(Errc::Busy, fmt::format("{} files of {} were changed and not undone since",
                                         kFilesKept, to_string(plan.engine)))
        .advise(fmt::format("run `sudo gantry runtime configure{} --runtime={} --undo` first",
                            sys::root_flag(host), to_string(plan.engine)));
  }
  GANTRY_CHECK(save_journal(host, record, files).in("the journal"));
  for (const auto& change : plan.files) {
    const auto* file = record.find(real_place(host, change.path));
    if (change.changes()) {
      GANTRY_CHECK(files.replace(host.outside(file->path), change.after, file->mode));
      outcome.files.push_back(
          fmt::format("{}: {}", change.path, change.before ? "changed" : "written"));
    } else if (file != nullptr && partner && partner->find(file->path) != nullptr) {
      outcome.files.push_back(fmt::format("{}: is there for {}; it stays until both are undone",
                                          change.path, to_string(partner->engine)));
    }
  }
  return outcome;
}

Result<JournalResult> undo(const sys::Host& host, Engine engine, FileWriter& files) {
  GANTRY_TRY(const auto held, lock(host, files));
  GANTRY_TRY(auto record, load_journal(host, engine).in("the journal"));
  if (!record) {
    return Error(Errc::NotFound,
                 fmt::format("nothing to undo: {} has no journal, so gantry has not "
                             "changed the configuration of {} here",
                             journal_directory(engine), to_string(engine)));
  }
  GANTRY_TRY(const auto partner, load_partner(host, engine));
  JournalResult outcome;
  // In reverse order: an import is removed before the file that it names.
  for (auto file = record->files.rbegin(); file != record->files.rend(); ++file) {
    const auto* theirs = partner ? partner->find(file->path) : nullptr;
    GANTRY_CHECK(theirs != nullptr
                     ? hand_over(host, *file, *theirs, partner->engine, files, outcome)
                     : restore(host, *file, files, outcome));
  }
  for (auto path = record->directories.rbegin(); path != record->directories.rend(); ++path) {
    if (host.exists(*path)) GANTRY_CHECK(files.remove(host.outside(*path)));
  }
  GANTRY_CHECK(remove_journal(host, engine, files));
  return outcome;
}

}  // namespace gantry::engines
