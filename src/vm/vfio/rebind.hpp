// SPDX-License-Identifier: Apache-2.0
// Moves PCI functions from one driver to another, step by step, each step written to the journal
// before it is done. Every step looks at the machine first, so it can be repeated; every step can
// be undone.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "vm/vfio/effects.hpp"
#include "vm/vfio/journal.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::vfio {

enum class StepKind : std::uint8_t {
  LoadModule,
  PersistenceOff,
  StopService,
  CheckIdle,
  TakeUnbindLock,
  SetOverride,
  Unbind,
  Bind,
  Verify,
  KeepAwake,
  LetSleep,
  StartService,
  PersistenceOn
};

struct Step {
  StepKind kind = StepKind::LoadModule;
  std::size_t index = 0;  // of the module, the service, the address or the move
};

// The steps of a journal. They depend on the journal alone, so that they are the same for the
// program that goes on after a crash.
std::vector<Step> steps_of(const Journal& journal);
std::string describe(const Journal& journal,
                     const Step& step);  // "unbind 0000:3b:00.0 from nvidia"

struct RebindResult {
  std::vector<std::string> notes;  // what was left out or failed without harm, one sentence each
};

// Does the steps from journal.step on. On success the journal stays: the caller records the result,
// then removes it. If a step fails, takes all of them back and returns the first error; failures on
// the way back are added to its text, and the journal stays only if something is left to be done:
// then the code is Internal or Timeout. With any other code the functions are as they were.
Result<RebindResult> go_forward(const sys::Host& host, Journal& journal, const Effects& effects);

// Takes the steps up to journal.step back, the last one first.
Result<RebindResult> go_back(const sys::Host& host, Journal& journal, const Effects& effects);

// Returns true if every function has left its old driver, so that going on is the shorter way.
bool is_past_unbind(const Journal& journal);

}  // namespace gantry::vfio
