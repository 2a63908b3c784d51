// SPDX-License-Identifier: Apache-2.0
// Puts a specification where engines read it, without doing harm: never a bad or empty one over a
// good one, never beside another tool's of the same kind unless that was asked for.
#pragma once

#include "base/result.hpp"
#include "cdi/registry.hpp"
#include "cdi/write.hpp"

#include <string>
#include <vector>

namespace gantry::cdi {

enum class Others : std::uint8_t {
  Refuse,    // another tool's file is an error that names it
  TakeOver,  // it is renamed to FILE.before-gantry, which no engine reads
  Ignore,    // the caller named the file and means it: nothing is looked for
};

struct WriteOptions {
  Others others = Others::Refuse;
  std::vector<std::string> directories = default_directories();
  std::optional<Format> format;  // default: by the file's name
};

struct Written {
  bool changed = false;            // false: the very bytes were there
  std::vector<std::string> moved;  // files that were taken over, by their old name
};

// Our files begin with a comment that says so (YAML; JSON has none).
bool is_ours(std::string_view text);

// `path` is inside the host's root.
Result<Written> write_spec(const sys::Host& host, const std::string& path, const Spec& spec,
                           const WriteOptions& options = {});

}  // namespace gantry::cdi
