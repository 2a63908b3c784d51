// SPDX-License-Identifier: Apache-2.0
// One check of `gantry doctor`: a row of text and a pure function from facts to a finding. The
// changes that a fix would make are a list of values, so that they can be shown, refused and
// recorded.
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

// Whether `--fix` may apply the remedy: always, only when a person names the check, or never.
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
  std::string summary;             // what was found; for Skip, why the check did not run
  std::vector<Evidence> evidence;  // the files and values that were read
  std::string cause;               // "": the check's own `cause` applies
  std::string remedy;              // "": the check's own `remedy` applies
  bool needs_root = false;         // skipped because only root may read the file
  // Ids of checks, separated by spaces: if one of them fails, it is the reason for this finding.
  std::string_view explained_by;

  Finding because(std::string text) &&;
  Finding unless_explained_by(std::string_view ids) &&;
  Finding advise(std::string command) &&;
};

Finding ok(std::string summary, std::vector<Evidence> evidence = {});
Finding info(std::string summary, std::vector<Evidence> evidence = {});
Finding warn(std::string summary, std::vector<Evidence> evidence = {});
Finding fail(std::string summary, std::vector<Evidence> evidence = {});
Finding skip(std::string reason, std::vector<Evidence> evidence = {});
Finding skip_needs_root(std::string_view path);  // a Skip with needs_root

struct Check {
  std::string_view id;         // "numa.unknown": stable, because scripts use it
  std::string_view reference;  // its number in our list of known faults: "H15"
  Area area = Area::Hardware;
  FixClass fix_class = FixClass::Never;
  std::string_view title;   // the statement that the check verifies
  std::string_view reads;   // the paths that it reads
  std::string_view cause;   // the usual cause of a failure
  std::string_view remedy;  // what to type
  Finding (*judge)(const Facts&) = nullptr;
  std::vector<Action> (*fix)(const Facts&) = nullptr;  // nullptr: only a person can fix it
  std::string_view by_hand;     // class A or R: why `fix` may return no steps
  std::string_view afterwards;  // what to do after the steps: "reboot"
  std::string_view closed;      // a path that the check must be able to read; often only root may
};

}  // namespace gantry::doctor
