// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_change/fake_card_for_test.hpp"

#include "base/sys/replace_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::mig_change {
namespace {

using model::MigMode;

mig::GpuProfile profile(const std::string& name, unsigned id, unsigned slices, unsigned size,
                        const std::vector<unsigned>& starts) {
  mig::GpuProfile one{
      .name = name, .id = id, .slices = slices, .max = static_cast<unsigned>(starts.size())};
  for (const auto start : starts) one.places.push_back({.start = start, .size = size});
  if (slices > 1)
    one.compute.push_back({.name = "1c." + name, .id = 0, .slices = 1, .max = slices});
  one.compute.push_back({.name = name, .id = slices - 1, .slices = slices, .max = 1});
  return one;
}

bool overlap(const mig::Placement& a, const mig::Placement& b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

LayoutInstance whole(const std::string& name, unsigned start, unsigned size) {
  return {.profile = name, .place = {start, size}, .compute = {{.profile = name}}};
}

}  // namespace

Layout halves() {
  return {.enabled = true, .instances = {whole("3g.71gb", 0, 4), whole("3g.71gb", 4, 4)}};
}

Layout mixed() {
  return {.enabled = true,
          .instances = {whole("3g.71gb", 0, 4), whole("2g.35gb", 4, 2), whole("1g.18gb", 6, 1)}};
}

Layout off() {
  return {};
}

model::PciAddress FakeCard::address() {
  return *model::PciAddress::parse("0000:3b:00.0");
}

FakeCard::FakeCard(ModeChange mode) : mode_(mode), host_(tree_.host()) {
  gpu_ = {
      .pci = address(),
      .uuid = {"GPU-1"},
      .name = "NVIDIA H200",
      .current = MigMode::Disabled,
      .pending = MigMode::Disabled,
      .profiles = {profile("1g.18gb", 19, 1, 1, {0, 1, 2, 3, 4, 5, 6}),
                   profile("2g.35gb", 14, 2, 2, {0, 2, 4}), profile("3g.71gb", 9, 3, 4, {0, 4})}};
}

Status FakeCard::act(std::string_view name, const std::function<Status()>& work) {
  ++acts_;
  if (acts_ == kill_at_ && before_) throw KilledForTest();
  auto status = fault ? fault(name) : Status{};
  if (status.ok()) status = work();
  if (acts_ == kill_at_) throw KilledForTest();
  return status;
}

Result<mig::MigGpu> FakeCard::read() const {
  auto seen = gpu_;
  if (tells_profiles_only_with_mig && gpu_.current != MigMode::Enabled) seen.profiles.clear();
  return seen;
}

Result<std::string> FakeCard::set_mode(bool enable) {
  if (!gpu_.instances.empty()) return Error(Errc::Busy, "instances exist");
  gpu_.pending = enable ? MigMode::Enabled : MigMode::Disabled;
  if (mode_ == ModeChange::Immediate) gpu_.current = gpu_.pending;
  return gpu_.current == gpu_.pending ? std::string() : std::string("a reset is required");
}

// Ids as the driver gives them: they depend on size and place only.
Status FakeCard::create_instance(unsigned profile_id, const mig::Placement& place, unsigned& id) {
  const auto found = std::find_if(gpu_.profiles.begin(), gpu_.profiles.end(),
                                  [&](const auto& one) { return one.id == profile_id; });
  if (gpu_.current != MigMode::Enabled) return Error(Errc::Unsupported, "MIG is off");
  if (found == gpu_.profiles.end() ||
      std::count(found->places.begin(), found->places.end(), place) == 0)
    return Error(Errc::Invalid, "no such place");
  for (const auto& other : gpu_.instances) {
    if (overlap(other.place, place)) return Error(Errc::Busy, "not enough resources");
  }
  id = place.size == 4   ? 1 + place.start / 4
       : place.size == 2 ? 3 + place.start / 2
                         : 7 + place.start;
  gpu_.instances.push_back({.id = id, .profile = found->name, .place = place});
  std::sort(gpu_.instances.begin(), gpu_.instances.end(),
            [](const auto& a, const auto& b) { return a.place < b.place; });
  return {};
}

Status FakeCard::create_compute(unsigned instance, unsigned profile_id, unsigned& id) {
  for (auto& one : gpu_.instances) {
    if (one.id != instance) continue;
    const auto around = std::find_if(gpu_.profiles.begin(), gpu_.profiles.end(),
                                     [&](const auto& p) { return p.name == one.profile; });
    const auto found = std::find_if(around->compute.begin(), around->compute.end(),
                                    [&](const auto& p) { return p.id == profile_id; });
    if (found == around->compute.end()) return Error(Errc::Invalid, "no such profile");
    const auto taken = [&](unsigned number) {
      return std::any_of(one.compute.begin(), one.compute.end(),
                         [&](const auto& other) { return other.id == number; });
    };
    for (id = 0; taken(id); ++id) {
    }
    one.compute.push_back({.id = id,
                           .profile = found->name,
                           .place = {.start = id, .size = found->slices},
                           .uuid = {fmt::format("MIG-{}/{}", instance, id)}});
    return {};
  }
  return Error(Errc::NotFound, "no such instance");
}

Status FakeCard::destroy_compute(unsigned instance, unsigned compute) {
  for (auto& one : gpu_.instances) {
    if (one.id != instance) continue;
    if (std::erase_if(one.compute, [&](const auto& each) { return each.id == compute; }) > 0)
      return {};
  }
  return Error(Errc::NotFound, "no such compute instance");
}

Status FakeCard::destroy_instance(unsigned instance) {
  for (const auto& one : gpu_.instances) {
    if (one.id == instance && !one.compute.empty()) return Error(Errc::Busy, "it is in use");
  }
  if (std::erase_if(gpu_.instances, [&](const auto& one) { return one.id == instance; }) > 0)
    return {};
  return Error(Errc::NotFound, "no such instance");
}

Actions FakeCard::actions(int kill_at, bool before) {
  kill_at_ = kill_at;
  before_ = before;
  acts_ = 0;
  Actions actions;
  actions.read = [this](const auto&) { return read(); };
  actions.set_mode = [this](const auto&, bool enable) -> Result<std::string> {
    std::string why;
    GANTRY_CHECK(act("set-mode", [&]() -> Status {
      GANTRY_TRY(why, set_mode(enable));
      return {};
    }));
    return why;
  };
  actions.create_gpu_instance = [this](const auto&, unsigned profile_id,
                                       const mig::Placement& place) -> Result<unsigned> {
    unsigned id = 0;
    GANTRY_CHECK(
        act("create-gpu-instance", [&] { return create_instance(profile_id, place, id); }));
    return id;
  };
  actions.create_compute_instance = [this](const auto&, unsigned instance, unsigned profile_id,
                                           const mig::Placement&) -> Result<unsigned> {
    unsigned id = 0;
    GANTRY_CHECK(
        act("create-compute-instance", [&] { return create_compute(instance, profile_id, id); }));
    return id;
  };
  actions.destroy_compute_instance = [this](const auto&, unsigned instance, unsigned compute) {
    return act("destroy-compute-instance", [&] { return destroy_compute(instance, compute); });
  };
  actions.destroy_gpu_instance = [this](const auto&, unsigned instance) {
    return act("destroy-gpu-instance", [&] { return destroy_instance(instance); });
  };
  actions.save = [this](std::string_view path, std::string_view content) {
    return act("save", [&] { return sys::replace_file(host_.outside(path), content); });
  };
  if (works_with_reset) {
    actions.reset = [this](const auto&) {
      return act("reset", [&]() -> Status {
        reset();
        return {};
      });
    };
  }
  return actions;
}

void FakeCard::reboot() {
  gpu_.instances.clear();
  reset();
}

void FakeCard::reset() {
  gpu_.instances.clear();
  gpu_.current = gpu_.pending;
}

std::string FakeCard::uuids() const {
  std::vector<std::string> all;
  for (const auto& instance : gpu_.instances) {
    for (const auto& compute : instance.compute) all.push_back(compute.uuid.text);
  }
  return fmt::format("{}", fmt::join(all, " "));
}

}  // namespace gantry::mig_change
