// SPDX-License-Identifier: Apache-2.0
// Files that may be damaged: the record, the journal, lists of files, options of modprobe, patches.
#include "install/driver_setup/build_modules.hpp"
#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/module_options.hpp"
#include "install/driver_setup/place_files.hpp"
#include "install/driver_setup/verify.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace gantry::driver_setup {
namespace {

void read_all(const std::string& text) {
  if (const auto record = parse_record(text); record.ok()) {
    const auto again = parse_record(to_json(*record));
    if (!again.ok() || !(*again == *record)) std::abort();
  }
  if (const auto journal = parse_install_journal(text); journal.ok()) {
    const auto again = parse_install_journal(to_json(*journal));
    if (!again.ok() || !(*again == *journal)) std::abort();
  }
  if (const auto files = parse_file_list(text); files.ok()) {
    if (!parse_file_list(to_json(*files)).ok()) std::abort();
  }
  if (options_in_file(text, "nvidia").size() > 4096) std::abort();
  if (options_in_command_line(text, "nvidia").size() > 4096) std::abort();
  (void)patch_directory(text, "/unpacked", "kernel").ok();
  (void)parse_licence_status(text);
}

}  // namespace
}  // namespace gantry::driver_setup

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gantry::driver_setup::read_all(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
