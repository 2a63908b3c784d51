// SPDX-License-Identifier: Apache-2.0
// Does the steps of a journal, and takes them back.
#pragma once

#include "install/driver_setup/setup_work_internal.hpp"

namespace gantry::driver_setup {

// All steps, each written to the journal before it is done. If one fails, takes all of them back
// and returns the error. From Record on nothing is taken back: what fails there becomes a note.
// The journal is gone on success, and after a way back that succeeded.
Status go_forward(SetupWork& work, std::vector<std::string>& done);

// The steps after the record, which nothing takes back: what fails becomes a note. Then the journal
// is gone.
void finish_recorded(SetupWork& work, std::vector<std::string>& done);

// Takes the steps up to journal.step back, the last one first, and removes the journal. Internal,
// with every failure, if something is left in between.
Status go_back(SetupWork& work);

}  // namespace gantry::driver_setup
