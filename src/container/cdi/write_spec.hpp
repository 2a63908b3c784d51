// SPDX-License-Identifier: Apache-2.0
// Writes a specification to a directory that engines read. Never replaces a good specification by
// an invalid or empty one. Never writes a second file of a kind that another tool already defines,
// unless the caller asks for it.
#pragma once

#include "base/core/result.hpp"
#include "container/cdi/registry.hpp"
#include "container/cdi/spec_text.hpp"

#include <string>
#include <vector>

namespace gantry::cdi {

enum class ExistingSpecPolicy : std::uint8_t {
  Refuse,          // another file with the kind is an error that names it
  TakeOver,        // rename the other file to FILE.before-gantry, which engines do not read
  TakeOverTarget,  // rename only the file at the target path; other files are an error
};

struct WriteOptions {
  ExistingSpecPolicy others = ExistingSpecPolicy::Refuse;
  std::vector<std::string> directories = default_directories();
  std::optional<Format> format;  // default: by the file's name
  std::string apart;  // files with this path prefix have the kind but other devices; "": none
};

struct WriteResult {
  bool changed = false;            // false: the file already had the same content
  std::vector<std::string> moved;  // old names of the files that were renamed
  std::vector<std::string> notes;  // harmless duplicates, one sentence each
};

// The text of our files: YAML starts with a comment that says that Gantry wrote it.
std::string to_text_with_marker(const Spec& spec, Format format);

// Recognizes our files by the comment. JSON files have no comment, and transformed files may lack
// it: these are recognized by the driver directory that they mount, or by their exact form.
bool is_written_by_gantry(std::string_view text);

// `path` is inside the host's root. If engines read its directory, other files with the same kind
// are conflicts: always those of other tools, and our own if they are in the same directory. For
// our own file in another directory there is a note, because engines use one of the two. If engines
// do not read the directory, only the file itself is a conflict.
Result<WriteResult> write_spec(const sys::Host& host, const std::string& path, const Spec& spec,
                               const WriteOptions& options = {});

// The error that write_spec() would return before it writes anything.
Status check_spec(const sys::Host& host, const std::string& path, const Spec& spec,
                  const WriteOptions& options = {});

}  // namespace gantry::cdi
