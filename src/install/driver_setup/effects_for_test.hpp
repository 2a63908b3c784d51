// SPDX-License-Identifier: Apache-2.0
// The effects of a SetupMachine.
#pragma once

#include "install/driver_setup/idle.hpp"
#include "install/driver_setup/machine_for_test.hpp"

namespace gantry::driver_setup {

class TestEffects final : public HostFiles {
 public:
  TestEffects(const sys::Host& host, SetupMachine& machine) : HostFiles(host), machine_(machine) {}

  Status save(const std::string& path, std::string_view content, unsigned mode) override;
  Status copy(const std::string& from, const std::string& to, unsigned mode) override;
  Status make_directory(const std::string& path) override;
  Status make_link(const std::string& path, const std::string& target) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status remove_tree(const std::string& path) override;
  Status sync(const std::string& path) override;
  Status load_module(const std::string& path, const std::string& options) override;
  Status unload_module(const std::string& name) override;
  Status write_value(const std::string& path, const std::string& value) override;
  Status make_node(const std::string& path, const sys::FileInfo& node) override;
  Result<std::string> run(const ProgramCall& call) override;
  Result<driver_package::Downloaded> download(
      const driver_package::DownloadRequest& request) override;
  Status terminate(std::uint32_t pid) override;
  Status refresh_cdi() override;
  Status remove_cdi() override;
  Status tell_agent() override;
  void pause(std::chrono::milliseconds time) override;

 private:
  // Counts the effect and does what the script says around `act`. `halfway` cuts what was written.
  Status gated(const std::string& entry, const std::function<Status()>& act,
               const std::function<void()>& halfway = {});
  Status run_program(const ProgramCall& call, std::string& output);
  Status unpack(const std::string& archive, const std::string& target);
  Status make(const ProgramCall& call);
  Status smi(const std::string& program, std::string& output) const;
  Status systemctl(const std::string& verb, const std::string& unit);
  Status modprobe(const std::string& name);
  void apt_get(const ProgramCall& call);
  // apt-get --simulate: libnvidia-ml1 comes with nvidia-smi, and nothing needs old-thing.
  std::string simulate_apt(const ProgramCall& call) const;
  std::string dpkg_query() const;
  // Keys of its database alone.
  Status rpm(const ProgramCall& call, std::string& output);
  Status ldconfig();
  void write(const std::string& path, std::string_view content);  // as a program: not synced
  bool dies_halfway() const;                                      // asked by the effect itself
  void cut(const std::string& path);

  SetupMachine& machine_;
};

}  // namespace gantry::driver_setup
