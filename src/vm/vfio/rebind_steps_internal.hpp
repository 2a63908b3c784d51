// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vm/vfio/rebind.hpp"

namespace gantry::vfio {

// Does and undoes single steps. It keeps no state but the notes.
class StepRunner {
 public:
  StepRunner(const sys::Host& host, const Journal& journal, const Effects& effects)
      : host_(host), journal_(journal), effects_(effects) {}

  Status execute(const Step& step);
  Status undo(const Step& step);
  const FunctionMove* move_of(const Step& step) const;  // nullptr: the step is about no function
  bool has_gone(const FunctionMove& move) const;        // unplugged, or another card is there

  std::vector<std::string> notes;

 private:
  Status check_same_card(const FunctionMove& move) const;
  Status set_override(const FunctionMove& move, const std::string& driver) const;
  Status unbind(const FunctionMove& move) const;
  Status bind(const FunctionMove& move, const std::string& driver) const;
  Status take_unbind_lock(const FunctionMove& move) const;
  Status give_unbind_lock_back(const FunctionMove& move) const;
  Status check_idle() const;
  Status verify();
  void check_driver_files(const model::PciAddress& gpu);
  void check_node(const std::string& node);
  void note_without_driver(const FunctionMove& move);
  bool is_needed(std::string_view module) const;
  void note_once(std::string text);
  Status run_service(std::string_view verb, const std::string& unit) const;
  Status set_persistence(const model::PciAddress& gpu, std::string_view value) const;
  Status leave_new_driver(const FunctionMove& move) const;
  Status return_to_old_driver(const FunctionMove& move) const;
  void note_failure(std::string_view doing, const Status& done);
  void let_sleep(const FunctionMove& move);

  const sys::Host& host_;
  const Journal& journal_;
  const Effects& effects_;
};

}  // namespace gantry::vfio
