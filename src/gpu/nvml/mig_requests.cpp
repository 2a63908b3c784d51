// SPDX-License-Identifier: Apache-2.0
// The changes of MIG, and the loop that answers requests.
#include "base/core/text.hpp"
#include "gpu/nvml/device_query.hpp"
#include "gpu/nvml/mig_machine.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::nvml {
namespace {

using mig_nvml::MigAnswer;
using mig_nvml::MigRequest;
using Kind = MigRequest::Kind;

MigAnswer refused(const Error& why) {
  return {.done = false, .code = why.code(), .text = why.text()};
}

MigAnswer done(unsigned created = 0) {
  return {.done = true, .created = created};
}

#define NEED(call) \
  if (nvml.call == nullptr) return nvml_error(NVML_ERROR_FUNCTION_NOT_FOUND, #call)
#define CALL(call, ...) \
  if (const auto code = nvml.call(__VA_ARGS__); code != NVML_SUCCESS) return nvml_error(code, #call)

Result<nvmlDevice_t> find_device(const Nvml& nvml, const model::PciAddress& gpu) {
  unsigned count = 0;
  CALL(nvmlDeviceGetCount_v2, &count);
  NEED(nvmlDeviceGetPciInfo_v3);
  for (unsigned index = 0; index < count; ++index) {
    nvmlDevice_t device = nullptr;
    if (nvml.nvmlDeviceGetHandleByIndex_v2(index, &device) != NVML_SUCCESS) continue;
    nvmlPciInfo_t pci{};
    if (nvml.nvmlDeviceGetPciInfo_v3(device, &pci) != NVML_SUCCESS) continue;
    if (model::PciAddress::parse(to_string(pci.busId)) == gpu) return device;
  }
  return Error(Errc::NotFound, "NVML does not have " + gpu.sysfs());
}

Result<nvmlGpuInstance_t> find_instance(const Nvml& nvml, const MigRequest& request) {
  GANTRY_TRY(auto* const device, find_device(nvml, request.gpu));
  NEED(nvmlDeviceGetGpuInstanceById);
  nvmlGpuInstance_t instance = nullptr;
  CALL(nvmlDeviceGetGpuInstanceById, device, request.gpu_instance, &instance);
  return instance;
}

// The text is why the mode is only pending.
Result<MigAnswer> set_mode(const Nvml& nvml, const MigRequest& request) {
  GANTRY_TRY(auto* const device, find_device(nvml, request.gpu));
  NEED(nvmlDeviceSetMigMode);
  nvmlReturn_t activation = NVML_SUCCESS;
  CALL(nvmlDeviceSetMigMode, device,
       request.enable ? unsigned{NVML_DEVICE_MIG_ENABLE} : unsigned{NVML_DEVICE_MIG_DISABLE},
       &activation);
  auto answer = done();
  if (activation != NVML_SUCCESS)
    answer.text = nvml_error(activation, "activating the mode").text();
  return answer;
}

Result<MigAnswer> create_gpu_instance(const Nvml& nvml, const MigRequest& request) {
  GANTRY_TRY(auto* const device, find_device(nvml, request.gpu));
  nvmlGpuInstance_t instance = nullptr;
  if (request.place.size > 0 && nvml.nvmlDeviceCreateGpuInstanceWithPlacement != nullptr) {
    const nvmlGpuInstancePlacement_t place{request.place.start, request.place.size};
    CALL(nvmlDeviceCreateGpuInstanceWithPlacement, device, request.profile, &place, &instance);
  } else {
    NEED(nvmlDeviceCreateGpuInstance);
    CALL(nvmlDeviceCreateGpuInstance, device, request.profile, &instance);
  }
  NEED(nvmlGpuInstanceGetInfo);
  nvmlGpuInstanceInfo_t info{};
  CALL(nvmlGpuInstanceGetInfo, instance, &info);
  return done(info.id);
}

Result<MigAnswer> create_compute_instance(const Nvml& nvml, const MigRequest& request) {
  GANTRY_TRY(auto* const parent, find_instance(nvml, request));
  nvmlComputeInstance_t instance = nullptr;
  if (request.place.size > 0 && nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement != nullptr) {
    const nvmlComputeInstancePlacement_t place{request.place.start, request.place.size};
    CALL(nvmlGpuInstanceCreateComputeInstanceWithPlacement, parent, request.profile, &place,
         &instance);
  } else {
    NEED(nvmlGpuInstanceCreateComputeInstance);
    CALL(nvmlGpuInstanceCreateComputeInstance, parent, request.profile, &instance);
  }
  NEED(nvmlComputeInstanceGetInfo);
  nvmlComputeInstanceInfo_t info{};
  CALL(nvmlComputeInstanceGetInfo, instance, &info);
  return done(info.id);
}

Result<MigAnswer> destroy_compute_instance(const Nvml& nvml, const MigRequest& request) {
  GANTRY_TRY(auto* const parent, find_instance(nvml, request));
  NEED(nvmlGpuInstanceGetComputeInstanceById);
  NEED(nvmlComputeInstanceDestroy);
  nvmlComputeInstance_t instance = nullptr;
  CALL(nvmlGpuInstanceGetComputeInstanceById, parent, request.compute_instance, &instance);
  CALL(nvmlComputeInstanceDestroy, instance);
  return done();
}

Result<MigAnswer> destroy_gpu_instance(const Nvml& nvml, const MigRequest& request) {
  GANTRY_TRY(auto* const instance, find_instance(nvml, request));
  NEED(nvmlGpuInstanceDestroy);
  CALL(nvmlGpuInstanceDestroy, instance);
  return done();
}

Result<MigAnswer> act(const Nvml& nvml, const MigRequest& request) {
  switch (request.kind) {
    case Kind::Read: {
      auto answer = done();
      GANTRY_TRY(answer.machine, read_mig_machine(nvml));
      return answer;
    }
    case Kind::SetMode: return set_mode(nvml, request);
    case Kind::CreateGpuInstance: return create_gpu_instance(nvml, request);
    case Kind::CreateComputeInstance: return create_compute_instance(nvml, request);
    case Kind::DestroyComputeInstance: return destroy_compute_instance(nvml, request);
    case Kind::DestroyGpuInstance: return destroy_gpu_instance(nvml, request);
  }
  return Error(Errc::Invalid, "unknown request");
}

bool send_line(int socket, std::string line) {
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const auto sent = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Calls `answer` for each line until the other end closes the socket.
template <class Answer>
int serve(int socket, const Answer& answer) {
  std::string received;
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto got = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    received.append(buffer.data(), static_cast<std::size_t>(got));
    for (auto end = received.find('\n'); end != received.npos; end = received.find('\n')) {
      const auto line = received.substr(0, end);
      received.erase(0, end + 1);
      if (!send_line(socket, to_line(answer(line)))) return 0;
    }
    if (received.size() > mig_nvml::kMaxRequest) return 1;
  }
}

}  // namespace

MigAnswer answer_mig(const Nvml& nvml, const MigRequest& request) {
  auto answer = act(nvml, request);
  return answer.ok() ? *std::move(answer) : refused(answer.error());
}

int serve_mig(const Nvml& nvml, int socket) {
  return serve(socket, [&](const std::string& line) {
    const auto request = mig_nvml::parse_request(line);
    return request.ok() ? answer_mig(nvml, *request) : refused(request.error());
  });
}

int serve_no_mig(const Error& why, int socket) {
  return serve(socket, [&](const std::string& /*line*/) { return refused(why); });
}

}  // namespace gantry::nvml
