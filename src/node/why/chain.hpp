// SPDX-License-Identifier: Apache-2.0
// From a pod's text to a GPU in its container is a chain. Each link says what was read and whether
// it holds; the first one that does not is the answer to "why has my pod no GPU?".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::why {

enum class Verdict : std::uint8_t {
  Holds,
  Broken,
  Doubtful,  // works, or may; worth a look
  Unknown    // could not be looked at from here
};
std::string_view to_string(Verdict verdict);  // "ok", "BROKEN", "look", "?"

struct Link {
  std::string id;    // "spec.limits"
  std::string what;  // "The pod asks for GPUs"
  Verdict verdict = Verdict::Holds;
  std::string read;    // what was seen
  std::string cause;   // one sentence, when it does not hold
  std::string remedy;  // a command, or a line to write
  bool operator==(const Link&) const = default;
};

struct Chain {
  std::string subject;  // "pod default/train"
  std::vector<Link> links;

  const Link* first(Verdict verdict) const;  // nullptr: none
  // nullptr: nothing found that would keep GPUs from it.
  const Link* first_broken() const;
};

std::string to_text(const Chain& chain, bool color);
std::string to_json(const Chain& chain);

}  // namespace gantry::why
