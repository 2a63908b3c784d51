// SPDX-License-Identifier: Apache-2.0
// Judges before the first change whether a driver can be installed. Values in, values out: it reads
// and writes nothing.
#pragma once

#include "install/preflight/facts.hpp"
#include "install/preflight/request.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::preflight {

enum class Severity : std::uint8_t {
  Blocks,  // the installation would fail or do harm
  Warns,   // it can go on, but somebody should know
  Notes    // a fact that explains what will be done
};
std::string_view to_string(Severity severity);  // "blocks", "warns", "notes"

struct Finding {
  std::string code;  // stable, for programs: "headers-missing"
  Severity severity = Severity::Blocks;
  std::string sentence;  // what is the case, for people
  std::string cause;     // why it matters; "" if the sentence says it
  std::string remedy;    // a command or a sentence; "" if nothing helps
  bool operator==(const Finding&) const = default;
};

// Every code that judge() can give, for --ignore and for the documentation.
enum class Ignorable : std::uint8_t { Yes, No };
struct KnownFinding {
  std::string_view code;
  Ignorable ignorable;  // DriverRequest::ignore turns a blocker into a warning
  std::string_view meaning;
  std::string_view helps;  // in general; a finding has the command for the machine
};
std::span<const KnownFinding> known_findings();
const KnownFinding* find_known_finding(std::string_view code);  // nullptr if there is none
std::string known_findings_markdown();                          // the table of docs/driver.md

// The flavour that was asked for, or that modules which were built elsewhere have. nullopt: what
// suits the GPUs.
std::optional<Flavour> wanted_flavour(const MachineFacts& facts, const DriverRequest& request);

// Blockers first. Each code at most once for each GPU, path or process that it is about.
std::vector<Finding> judge(const MachineFacts& facts, const DriverRequest& request);

// Rewrites the remedies for the person who reads them: commands that belong to the machine below a
// root say so. judge() writes them as one would type them on the machine itself.
void address_remedies(const sys::Host& host, std::span<Finding> findings);

bool blocks(std::span<const Finding> findings);

// The first blocker as an error with its remedy, and how many more there are. Ok without blockers.
Status first_blocker(std::span<const Finding> findings);

// For `gantry driver preflight`: one paragraph for each finding, and a last line with the verdict.
std::string to_text(const MachineFacts& facts, const DriverRequest& request,
                    std::span<const Finding> findings);
std::string to_json(const MachineFacts& facts, const DriverRequest& request,
                    std::span<const Finding> findings);

}  // namespace gantry::preflight
