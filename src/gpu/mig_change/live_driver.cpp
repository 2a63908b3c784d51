// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_change/live_driver.hpp"

#include "base/sys/kernel.hpp"
#include "base/sys/replace_file.hpp"
#include "gpu/mig/known_models.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::mig_change {
namespace {

Status save_file(const sys::Host& host, std::string_view path, std::string_view content) {
  GANTRY_CHECK(sys::real_kernel()->make_directory(host, std::string(kStateDirectory)));
  return sys::replace_file(host.outside(path), content);
}

}  // namespace

Result<mig_nvml::Session*> LiveDriver::session() {
  if (!session_) {
    GANTRY_TRY(auto started, mig_nvml::Session::start(host_, options_));
    session_.emplace(std::move(started));
  }
  return &*session_;
}

Result<mig_nvml::MigMachine> LiveDriver::read() {
  GANTRY_TRY(auto* const session, session());
  GANTRY_TRY(machine_, session->read());
  for (auto& gpu : machine_.gpus) mig::correct_profiles(gpu);
  return machine_;
}

Result<mig::MigGpu> LiveDriver::read_gpu(const model::PciAddress& gpu) {
  GANTRY_CHECK(read());
  const auto found = std::find_if(machine_.gpus.begin(), machine_.gpus.end(),
                                  [&](const mig::MigGpu& one) { return one.pci == gpu; });
  if (found != machine_.gpus.end()) return *found;
  return Error(Errc::NotFound, fmt::format("NVML does not have {} any more", gpu.sysfs()));
}

Actions LiveDriver::actions(const Reset& reset) {
  Actions actions;
  actions.read = [this](const auto& gpu) { return read_gpu(gpu); };
  actions.set_mode = [this](const auto& gpu, bool enable) -> Result<std::string> {
    GANTRY_TRY(auto* const session, session());
    return session->set_mode(gpu, enable);
  };
  actions.create_gpu_instance = [this](const auto& gpu, unsigned profile,
                                       const auto& place) -> Result<unsigned> {
    GANTRY_TRY(auto* const session, session());
    return session->create_gpu_instance(gpu, profile, place);
  };
  actions.create_compute_instance = [this](const auto& gpu, unsigned instance, unsigned profile,
                                           const auto& place) -> Result<unsigned> {
    GANTRY_TRY(auto* const session, session());
    return session->create_compute_instance(gpu, instance, profile, place);
  };
  actions.destroy_compute_instance = [this](const auto& gpu, unsigned instance,
                                            unsigned compute) -> Status {
    GANTRY_TRY(auto* const session, session());
    return session->destroy_compute_instance(gpu, instance, compute);
  };
  actions.destroy_gpu_instance = [this](const auto& gpu, unsigned instance) -> Status {
    GANTRY_TRY(auto* const session, session());
    return session->destroy_gpu_instance(gpu, instance);
  };
  actions.save = [this](std::string_view path, std::string_view content) {
    return save_file(host_, path, content);
  };
  if (reset) {
    actions.reset = [this, reset](const auto& gpu) {
      session_.reset();
      return reset(gpu);
    };
  }
  return actions;
}

}  // namespace gantry::mig_change
