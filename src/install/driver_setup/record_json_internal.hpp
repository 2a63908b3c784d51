// SPDX-License-Identifier: Apache-2.0
// The record as a part of other documents.
#pragma once

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "install/driver_setup/install_record.hpp"

namespace gantry::driver_setup {

void write_record(json::Writer& out, const InstallRecord& record);
Result<InstallRecord> read_record_value(const json::Value& value);

}  // namespace gantry::driver_setup
