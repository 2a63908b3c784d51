// SPDX-License-Identifier: Apache-2.0
// The parts of judge(). Each looks at its own fields and adds its findings.
#pragma once

#include "install/preflight/judge.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::preflight {

// What a finding says, without its severity.
struct Words {
  std::string sentence;
  std::string cause{};
  std::string remedy{};
};

class Judgement {
 public:
  Judgement(const MachineFacts& machine, const DriverRequest& wanted)
      : facts(machine), request(wanted), version(DriverVersion::parse(version_of(wanted))) {}

  const MachineFacts& facts;
  const DriverRequest& request;
  std::optional<DriverVersion> version;  // nullopt if none was given or it is not a version
  std::vector<Finding> findings;

  void add(Severity severity, std::string_view code, Words words) {
    findings.push_back({.code = std::string(code),
                        .severity = severity,
                        .sentence = std::move(words.sentence),
                        .cause = std::move(words.cause),
                        .remedy = std::move(words.remedy)});
  }
  void block(std::string_view code, Words words) { add(Severity::Blocks, code, std::move(words)); }
  void warn(std::string_view code, Words words) { add(Severity::Warns, code, std::move(words)); }
  void note(std::string_view code, Words words) { add(Severity::Notes, code, std::move(words)); }

  // The archive is the guest driver of vGPUs.
  bool wants_guest_driver() const;
  std::optional<Flavour> wanted_flavour() const;
  // False for another kernel than the running one: then nothing is loaded or unloaded.
  bool loads() const;
  // A driver is loaded, and it is not the one that is asked for: it has to be unloaded.
  bool replaces_loaded() const;
};

void judge_request(Judgement& judgement);
void judge_gpus(Judgement& judgement);
void judge_binding(Judgement& judgement);
void judge_kernel(Judgement& judgement);
void judge_precompiled(Judgement& judgement);
void judge_installed(Judgement& judgement);
void judge_users(Judgement& judgement);
void judge_machine(Judgement& judgement);
void judge_clock(Judgement& judgement);

// "56 years and 321 days", "2 days and 3 hours", "4 minutes"
std::string describe_duration(std::int64_t seconds);

}  // namespace gantry::preflight
