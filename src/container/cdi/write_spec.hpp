// SPDX-License-Identifier: Apache-2.0
// Puts a specification where engines read it, without doing harm: never a bad or empty one over a
// good one, never beside another tool's of the same kind unless that was asked for.
#pragma once

#include "base/core/result.hpp"
#include "container/cdi/registry.hpp"
#include "container/cdi/spec_text.hpp"

#include <string>
#include <vector>

namespace gantry::cdi {

enum class ExistingSpecPolicy : std::uint8_t {
  Refuse,          // a file that would be doubled is an error that names it
  TakeOver,        // it is renamed to FILE.before-gantry, which no engine reads
  TakeOverTarget,  // the same with the very file that is to be written, others are an error
};

struct WriteOptions {
  ExistingSpecPolicy others = ExistingSpecPolicy::Refuse;
  std::vector<std::string> directories = default_directories();
  std::optional<Format> format;  // default: by the file's name
  std::string apart;  // files whose paths begin so have the kind, and other devices; "": none
};

struct WriteResult {
  bool changed = false;            // false: the very bytes were there
  std::vector<std::string> moved;  // files that were taken over, by their old name
  std::vector<std::string> notes;  // what is doubled without harm, one sentence each
};

// The text as our files have it: YAML begins with a comment that says whose it is.
std::string to_text_with_marker(const Spec& spec, Format format);

// By the comment; for JSON, which has none, and for what was transformed: by the driver's directory
// that it mounts, or by being what we would write.
bool is_written_by_gantry(std::string_view text);

// `path` is inside the host's root. Where its directory is one that engines read, other files with
// the kind count: another tool's always, our own in the same directory. Of our own in another
// directory engines take one: there is a note. Elsewhere only the file itself counts.
Result<WriteResult> write_spec(const sys::Host& host, const std::string& path, const Spec& spec,
                               const WriteOptions& options = {});

}  // namespace gantry::cdi
