// SPDX-License-Identifier: Apache-2.0
// Writing a plan so that it can be taken back. What the files were is on disk before any of them is
// changed, so after a crash at any point undo still restores the very bytes. Whether a file is as
// it was, as we left it or changed by somebody since is seen by comparing it, never remembered.
#pragma once

#include "container/engines/change_plan.hpp"

#include <memory>

namespace gantry::engines {

// The steps of which each happens whole or not at all. Paths are outside the root.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  virtual Status replace(const std::string& path, std::string_view content, unsigned mode) = 0;
  virtual Status remove(const std::string& path) = 0;            // also an empty directory
  virtual Status make_directories(const std::string& path) = 0;  // with its parents
};

std::unique_ptr<FileWriter> disk_file_writer();

struct JournalResult {
  std::vector<std::string> files;  // what was done to which, one sentence each
  std::vector<std::string> notes;  // what could not be done, and why
};

// Busy when another one is at work.
Result<JournalResult> apply(const sys::Host& host, const ChangePlan& plan, FileWriter& files);

// Every file of the journal back to its bytes, or gone when it was not there. A file that somebody
// changed since keeps those changes: our keys alone are taken out. NotFound when there is no
// journal.
Result<JournalResult> undo(const sys::Host& host, Engine engine, FileWriter& files);

constexpr std::string_view kJournalsDirectory = "/var/lib/gantry/engines";

}  // namespace gantry::engines
