// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_nvml/messages.hpp"

#include "base/json/document.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

namespace gantry::mig_nvml {
namespace {

using Kind = MigRequest::Kind;

constexpr std::array<std::string_view, 6> kRequestKinds{"read",
                                                        "set-mode",
                                                        "create-gpu-instance",
                                                        "create-compute-instance",
                                                        "destroy-compute-instance",
                                                        "destroy-gpu-instance"};
constexpr std::size_t kErrorCodes = static_cast<std::size_t>(Errc::TooLarge) + 1;
constexpr std::size_t kMaxGpus = 256;
constexpr std::size_t kMaxProfiles = 64;
constexpr std::size_t kMaxPlaces = 64;
constexpr std::size_t kMaxInstances = 64;
constexpr std::size_t kMaxProcesses = 4096;
constexpr std::size_t kMaxName = 96;
constexpr std::size_t kMaxText = 4096;
constexpr std::uint64_t kMaxNumber = 65'535;  // ids, slices, counts: the largest are below 1000

Error bad_message(std::string_view what) {
  return {Errc::Corrupt, fmt::format("a message of gantry-nvml about MIG: {}", what)};
}

Result<unsigned> read_number(json::Value object, std::string_view key,
                             std::uint64_t limit = kMaxNumber) {
  const auto number = object[key].u64();
  if (!number || *number > limit)
    return bad_message(fmt::format("`{}` is not a number in range", key));
  return static_cast<unsigned>(*number);
}

Result<std::string> read_text(json::Value object, std::string_view key,
                              std::size_t limit = kMaxName) {
  auto text = object[key].string();
  if (!text || text->size() > limit) return bad_message(fmt::format("`{}` is not a text", key));
  return *std::move(text);
}

Result<model::PciAddress> read_address(json::Value object, std::string_view key) {
  GANTRY_TRY(const auto text, read_text(object, key));
  const auto address = model::PciAddress::parse(text);
  if (!address) return bad_message(fmt::format("`{}` is not a PCI address", key));
  return *address;
}

template <class T>
Result<std::vector<T>> read_list(json::Value object, std::string_view key, std::size_t limit,
                                 Result<T> (*read)(json::Value)) {
  const auto list = object[key];
  if (!list.is(json::Kind::Array) || list.size() > limit)
    return bad_message(fmt::format("`{}` is not a list in range", key));
  std::vector<T> all;
  for (const auto one : list) {
    GANTRY_TRY(auto value, read(one));
    all.push_back(std::move(value));
  }
  return all;
}

Result<mig::Placement> read_place(json::Value object) {
  mig::Placement place;
  GANTRY_TRY(place.start, read_number(object, "start"));
  GANTRY_TRY(place.size, read_number(object, "size"));
  return place;
}

Result<mig::ComputeProfile> read_compute_profile(json::Value object) {
  mig::ComputeProfile profile;
  GANTRY_TRY(profile.name, read_text(object, "name"));
  GANTRY_TRY(profile.id, read_number(object, "id"));
  GANTRY_TRY(profile.slices, read_number(object, "slices"));
  GANTRY_TRY(profile.max, read_number(object, "max"));
  GANTRY_TRY(profile.places, read_list(object, "places", kMaxPlaces, read_place));
  return profile;
}

Result<model::MigEngines> read_engines(json::Value object) {
  constexpr std::array<std::pair<std::string_view, int model::MigEngines::*>, 5> kEngines{
      {{"copy", &model::MigEngines::copy},
       {"decoder", &model::MigEngines::decoder},
       {"encoder", &model::MigEngines::encoder},
       {"jpeg", &model::MigEngines::jpeg},
       {"optical_flow", &model::MigEngines::optical_flow}}};
  model::MigEngines engines;
  for (const auto& [name, member] : kEngines) {
    GANTRY_TRY(const auto count, read_number(object, name));
    engines.*member = static_cast<int>(count);
  }
  return engines;
}

Result<mig::GpuProfile> read_profile(json::Value object) {
  mig::GpuProfile profile;
  GANTRY_TRY(profile.name, read_text(object, "name"));
  GANTRY_TRY(profile.id, read_number(object, "id"));
  GANTRY_TRY(profile.slices, read_number(object, "slices"));
  GANTRY_TRY(profile.max, read_number(object, "max"));
  GANTRY_TRY(profile.multiprocessors, read_number(object, "multiprocessors"));
  GANTRY_TRY(profile.memory_mib, read_number(object, "memory_mib", UINT32_MAX));
  GANTRY_TRY(profile.engines, read_engines(object["engines"]));
  GANTRY_TRY(profile.places, read_list(object, "places", kMaxPlaces, read_place));
  GANTRY_TRY(profile.compute, read_list(object, "compute", kMaxProfiles, read_compute_profile));
  return profile;
}

Result<mig::ComputeInstance> read_compute_instance(json::Value object) {
  mig::ComputeInstance instance;
  GANTRY_TRY(instance.id, read_number(object, "id"));
  GANTRY_TRY(instance.profile, read_text(object, "profile"));
  GANTRY_TRY(instance.place, read_place(object["place"]));
  GANTRY_TRY(instance.uuid.text, read_text(object, "uuid"));
  return instance;
}

Result<mig::GpuInstance> read_instance(json::Value object) {
  mig::GpuInstance instance;
  GANTRY_TRY(instance.id, read_number(object, "id"));
  GANTRY_TRY(instance.profile, read_text(object, "profile"));
  GANTRY_TRY(instance.place, read_place(object["place"]));
  GANTRY_TRY(instance.compute, read_list(object, "compute", kMaxInstances, read_compute_instance));
  return instance;
}

Result<model::MigMode> read_mode(json::Value object, std::string_view key) {
  const auto mode = model::parse_enum<model::MigMode>(object[key].string_or_empty());
  if (!mode) return bad_message(fmt::format("`{}` is not a mode", key));
  return *mode;
}

Result<mig::MigGpu> read_gpu(json::Value object) {
  mig::MigGpu gpu;
  GANTRY_TRY(const auto index, read_number(object, "index"));
  gpu.index = static_cast<int>(index);
  GANTRY_TRY(gpu.pci, read_address(object, "pci"));
  GANTRY_TRY(gpu.uuid.text, read_text(object, "uuid"));
  GANTRY_TRY(gpu.name, read_text(object, "name"));
  GANTRY_TRY(gpu.device_id, read_number(object, "device_id", UINT32_MAX));
  GANTRY_TRY(gpu.current, read_mode(object, "current"));
  GANTRY_TRY(gpu.pending, read_mode(object, "pending"));
  GANTRY_TRY(gpu.profiles, read_list(object, "profiles", kMaxProfiles, read_profile));
  GANTRY_TRY(gpu.instances, read_list(object, "instances", kMaxInstances, read_instance));
  GANTRY_TRY(gpu.subsystem_id, read_number(object, "subsystem_id", UINT32_MAX));
  return gpu;
}

Result<MigProcess> read_process(json::Value object) {
  MigProcess process;
  GANTRY_TRY(process.gpu, read_address(object, "gpu"));
  GANTRY_TRY(process.gpu_instance, read_number(object, "gpu_instance"));
  GANTRY_TRY(process.compute_instance, read_number(object, "compute_instance"));
  GANTRY_TRY(process.pid, read_number(object, "pid", UINT32_MAX));
  return process;
}

void write_place(json::Writer& out, const mig::Placement& place) {
  out.object([&] {
    out.member("start", place.start);
    out.member("size", place.size);
  });
}

void write_places(json::Writer& out, const std::vector<mig::Placement>& places) {
  out.array("places", places, [&](const auto& place) { write_place(out, place); });
}

void write_compute_profile(json::Writer& out, const mig::ComputeProfile& profile) {
  out.object([&] {
    out.member("name", profile.name);
    out.member("id", profile.id);
    out.member("slices", profile.slices);
    out.member("max", profile.max);
    write_places(out, profile.places);
  });
}

void write_profile(json::Writer& out, const mig::GpuProfile& profile) {
  out.object([&] {
    out.member("name", profile.name);
    out.member("id", profile.id);
    out.member("slices", profile.slices);
    out.member("max", profile.max);
    out.member("multiprocessors", profile.multiprocessors);
    out.member("memory_mib", profile.memory_mib);
    out.object("engines", [&] {
      out.member("copy", profile.engines.copy);
      out.member("decoder", profile.engines.decoder);
      out.member("encoder", profile.engines.encoder);
      out.member("jpeg", profile.engines.jpeg);
      out.member("optical_flow", profile.engines.optical_flow);
    });
    write_places(out, profile.places);
    out.array("compute", profile.compute,
              [&](const auto& compute) { write_compute_profile(out, compute); });
  });
}

void write_instance(json::Writer& out, const mig::GpuInstance& instance) {
  out.object([&] {
    out.member("id", instance.id);
    out.member("profile", instance.profile);
    out.key("place");
    write_place(out, instance.place);
    out.array("compute", instance.compute, [&](const mig::ComputeInstance& compute) {
      out.object([&] {
        out.member("id", compute.id);
        out.member("profile", compute.profile);
        out.key("place");
        write_place(out, compute.place);
        out.member("uuid", compute.uuid.text);
      });
    });
  });
}

Result<json::Document> read_document(std::string_view line, std::size_t limit) {
  if (line.size() > limit) return bad_message("it is too long");
  auto document = json::Document::parse(std::string(line));
  if (!document.ok()) return bad_message(document.error().text());
  if (!document->root().is(json::Kind::Object)) return bad_message("it is not an object");
  return document;
}

Result<MigMachine> read_machine(json::Value object) {
  MigMachine machine;
  GANTRY_TRY(machine.gpus, read_list(object, "gpus", kMaxGpus, read_gpu));
  GANTRY_TRY(machine.processes, read_list(object, "processes", kMaxProcesses, read_process));
  return machine;
}

}  // namespace

std::string_view to_string(Kind kind) {
  return kRequestKinds[static_cast<std::size_t>(kind)];
}

void write_gpu(json::Writer& out, const mig::MigGpu& gpu) {
  out.member("index", gpu.index);
  out.member("pci", gpu.pci.sysfs());
  out.member("uuid", gpu.uuid.text);
  out.member("name", gpu.name);
  out.member("device_id", gpu.device_id);
  out.member("subsystem_id", gpu.subsystem_id);
  out.member("current", model::to_string(gpu.current));
  out.member("pending", model::to_string(gpu.pending));
  out.array("profiles", gpu.profiles, [&](const auto& profile) { write_profile(out, profile); });
  out.array("instances", gpu.instances,
            [&](const auto& instance) { write_instance(out, instance); });
}

std::string to_line(const MigRequest& request) {
  json::Writer out;
  out.object([&] {
    out.member("request", to_string(request.kind));
    out.member("gpu", request.gpu.sysfs());
    out.member("enable", request.enable);
    out.member("profile", request.profile);
    out.key("place");
    write_place(out, request.place);
    out.member("gpu_instance", request.gpu_instance);
    out.member("compute_instance", request.compute_instance);
  });
  return std::move(out).text();
}

std::string to_line(const MigAnswer& answer) {
  json::Writer out;
  out.object([&] {
    out.member("done", answer.done);
    out.member("code", static_cast<unsigned>(answer.code));
    out.member("text", std::string_view(answer.text).substr(0, kMaxText / 4));
    out.member("created", answer.created);
    out.array("gpus", answer.machine.gpus,
              [&](const auto& gpu) { out.object([&] { write_gpu(out, gpu); }); });
    out.array("processes", answer.machine.processes, [&](const MigProcess& process) {
      out.object([&] {
        out.member("gpu", process.gpu.sysfs());
        out.member("gpu_instance", process.gpu_instance);
        out.member("compute_instance", process.compute_instance);
        out.member("pid", process.pid);
      });
    });
  });
  return std::move(out).text();
}

Result<MigRequest> parse_request(std::string_view line) {
  GANTRY_TRY(const auto document, read_document(line, kMaxRequest));
  const auto object = document.root();
  const auto word = object["request"].string_or_empty();
  const auto* found = std::find(kRequestKinds.begin(), kRequestKinds.end(), word);
  if (found == kRequestKinds.end()) return bad_message("`request` is not known");
  MigRequest request{.kind = static_cast<Kind>(found - kRequestKinds.begin())};
  GANTRY_TRY(request.gpu, read_address(object, "gpu"));
  const auto enable = object["enable"].boolean();
  if (!enable) return bad_message("`enable` is missing");
  request.enable = *enable;
  GANTRY_TRY(request.profile, read_number(object, "profile"));
  GANTRY_TRY(request.place, read_place(object["place"]));
  GANTRY_TRY(request.gpu_instance, read_number(object, "gpu_instance"));
  GANTRY_TRY(request.compute_instance, read_number(object, "compute_instance"));
  return request;
}

Result<MigAnswer> parse_answer(std::string_view line) {
  GANTRY_TRY(const auto document, read_document(line, kMaxAnswer));
  const auto object = document.root();
  MigAnswer answer;
  const auto done = object["done"].boolean();
  if (!done) return bad_message("`done` is missing");
  answer.done = *done;
  GANTRY_TRY(const auto code, read_number(object, "code", kErrorCodes - 1));
  answer.code = static_cast<Errc>(code);
  GANTRY_TRY(answer.text, read_text(object, "text", kMaxText));
  GANTRY_TRY(answer.created, read_number(object, "created"));
  GANTRY_TRY(answer.machine, read_machine(object));
  return answer;
}

}  // namespace gantry::mig_nvml
