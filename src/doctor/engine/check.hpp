// SPDX-License-Identifier: Apache-2.0
// One check of `gantry doctor`: a row of text and a pure function from facts to a finding. What it
// would change is a list of values, so that it can be shown, refused and recorded.
#pragma once

#include "doctor/engine/action.hpp"
#include "doctor/engine/facts.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::doctor {

enum class Verdict : std::uint8_t { Ok, Info, Warn, Fail, Skip };

// Whether a remedy may be applied by a program: always, only when a person names it, never.
enum class FixClass : std::uint8_t { Automatic, OnRequest, Never };

enum class Area : std::uint8_t {
  Guest,
  Hardware,
  Gpu,
  Modules,
  Nodes,
  Userland,
  Runtime,
  Kubelet,
  Fabric
};

std::string_view to_string(Verdict verdict);  // "ok", "info", "warn", "fail", "skip"
std::string_view letter(FixClass fix_class);  // "A", "R", "N"
std::string_view to_string(Area area);

struct Finding {
  Verdict verdict = Verdict::Ok;
  std::string summary;             // what was found; for Skip, why nothing was looked at
  std::vector<Evidence> evidence;  // what was read
  std::string cause;               // "" when the row's own sentence fits
  std::string remedy;              // "" when the row's own command fits
  bool needs_root = false;         // skipped because only root may read it

  Finding because(std::string text) &&;
  Finding advise(std::string command) &&;
};

Finding ok(std::string summary, std::vector<Evidence> evidence = {});
Finding info(std::string summary, std::vector<Evidence> evidence = {});
Finding warn(std::string summary, std::vector<Evidence> evidence = {});
Finding fail(std::string summary, std::vector<Evidence> evidence = {});
Finding skip(std::string reason, std::vector<Evidence> evidence = {});
Finding skip_needs_root(std::string_view path);  // a skip

struct Check {
  std::string_view id;         // "numa.unknown": stable, people put it into scripts
  std::string_view reference;  // its number in our list of known faults: "H15"
  Area area = Area::Hardware;
  FixClass fix_class = FixClass::Never;
  std::string_view title;   // what is true when all is well
  std::string_view reads;   // the paths it looks at
  std::string_view cause;   // why it is usually broken
  std::string_view remedy;  // what to type
  Finding (*judge)(const Facts&) = nullptr;
  std::vector<Action> (*fix)(const Facts&) = nullptr;  // none: only a person can
  std::string_view by_hand;     // of class A or R: why there may be no steps to do
  std::string_view afterwards;  // what is left when the steps are done: "at the next boot"
  std::string_view closed;      // a path without which nothing can be said, often root's alone
};

}  // namespace gantry::doctor
