// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/effects.hpp"

#include "base/sys/deadline_write.hpp"
#include "base/sys/kernel.hpp"

#include <memory>
#include <thread>

namespace gantry::vfio {
namespace {

constexpr std::chrono::seconds kProgramDeadline{60};

}  // namespace

Effects real_effects(const sys::Host& host, std::chrono::milliseconds deadline) {
  const std::shared_ptr<sys::Kernel> kernel = sys::real_kernel();
  Effects effects;
  effects.write = [&host, deadline](const std::string& path, std::string_view text) {
    return sys::write_with_deadline(host, path, text, deadline);
  };
  effects.load_module = [&host, kernel](const std::string& module) {
    return kernel->load_module(host, module);
  };
  effects.run = [&host, kernel](const std::vector<std::string>& argv) {
    return kernel->run(host, argv, kProgramDeadline);
  };
  effects.save = [&host, kernel](const std::string& path, std::string_view content) -> Status {
    GANTRY_CHECK(kernel->make_directory(host, path.substr(0, path.rfind('/'))));
    return kernel->write_file(host, path, std::string(content));
  };
  effects.remove = [&host, kernel](const std::string& path) -> Status {
    auto removed = kernel->remove_file(host, path);
    if (!removed.ok() && removed.error().code() == Errc::NotFound) return {};
    return removed;
  };
  effects.pause = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); };
  return effects;
}

}  // namespace gantry::vfio
