// SPDX-License-Identifier: Apache-2.0
// Writes a plan so that it can be undone. The old contents are on disk before any file is changed,
// so undo restores the exact bytes even after a crash at any point. Whether a file is original,
// written by us or changed since is decided by comparing its content, not by a stored flag.
#pragma once

#include "container/engines/change_plan.hpp"

#include <memory>

namespace gantry::engines {

// Atomic file operations. Paths are those of this process, not inside the host's root.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  virtual Status replace(const std::string& path, std::string_view content, unsigned mode) = 0;
  virtual Status remove(const std::string& path) = 0;            // also an empty directory
  virtual Status make_directories(const std::string& path) = 0;  // with its parents
};

std::unique_ptr<FileWriter> disk_file_writer();

struct JournalResult {
  std::vector<std::string> files;  // what was done to which file, one sentence each
  std::vector<std::string> notes;  // what could not be done, and why
};

// Busy if another process is applying or undoing a plan.
Result<JournalResult> apply(const sys::Host& host, const ChangePlan& plan, FileWriter& files);

// Restores every file of the journal, or removes it if it did not exist before. If a file was
// changed since, removes only our keys and keeps the other changes. NotFound if there is no
// journal.
Result<JournalResult> undo(const sys::Host& host, Engine engine, FileWriter& files);

constexpr std::string_view kJournalsDirectory = "/var/lib/gantry/engines";

}  // namespace gantry::engines
