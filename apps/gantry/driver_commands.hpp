// SPDX-License-Identifier: Apache-2.0
// The parts of `gantry driver`.
#pragma once

#include "gantry/command.hpp"
#include "install/driver_package/download.hpp"
#include "install/driver_setup/install.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::cli {

void add_driver_preflight(CLI::App& driver, Context& context, Action& chosen);
void add_driver_install(CLI::App& driver, Context& context, Action& chosen);
void add_driver_verify(CLI::App& driver, Context& context, Action& chosen);
void add_driver_status(CLI::App& driver, Context& context, Action& chosen);
void add_driver_upgrade(CLI::App& driver, Context& context, Action& chosen);
void add_driver_remove(CLI::App& driver, Context& context, Action& chosen);
void add_driver_load(CLI::App& driver, Context& context, Action& chosen);
void add_driver_build(CLI::App& driver, Context& context, Action& chosen);

// --json, --root and its other name --host-root.
void add_driver_machine(CLI::App& command, Context& context);

// The words that become a DriverRequest.
struct DriverFlags {
  preflight::DriverRequest request;
  std::string flavour;
  std::string source = "run";
};
void add_driver_flags(CLI::App& command, DriverFlags& flags);
// --drain, --terminate, --timeout.
void add_drain_flags(CLI::App& command, preflight::DriverRequest& request);
Result<preflight::DriverRequest> request_of(const DriverFlags& flags);

// Shows how far a download is, on the terminal that has it.
class ShownDownload final : public driver_package::DownloadProgress {
 public:
  explicit ShownDownload(const Context& context) : context_(context) {}
  void bytes(std::uint64_t done, std::uint64_t total) override;
  void note(std::string_view sentence) override;
  void clear();

 private:
  const Context& context_;
  std::uint64_t shown_ = 0;  // in percent, or in steps of 16 MiB
};

// From now on SIGINT, SIGTERM and SIGHUP ask a command that changes the machine to end.
void catch_termination(Context& context);

// What changes the machine. The host, the context and the progress must outlive it.
Result<std::unique_ptr<driver_setup::InstallEffects>> driver_effects(
    const sys::Host& host, const Context& context,
    driver_package::DownloadProgress* progress = nullptr);

// Facts by reading the machine, steps under a lease of the agent, progress to the terminal. The
// signals that catch_termination() catches stop it. `command` finishes the work after a crash.
driver_setup::SetupOptions driver_options(const sys::Host& host, Context& context,
                                          const preflight::DriverRequest& request,
                                          std::string_view command);

// Findings and steps of an installation, without doing anything.
Result<int> dry_install(const sys::Host& host, const preflight::DriverRequest& request,
                        const driver_setup::SetupOptions& options, const Context& context);

// Prints foreign text, in lines that fit the terminal. A remedy ("fix: COMMAND") stays whole, so
// that it can be pasted.
void print_fitting(std::string_view text, const Context& context);

// Steps, notes and the sentence at the end, or JSON.
void print_setup_report(const driver_setup::SetupReport& report, std::string_view sentence,
                        const Context& context);

}  // namespace gantry::cli
