// SPDX-License-Identifier: Apache-2.0
// Labels of the simulated machines, in the forms that feature discovery's own tests expect, with
// stricter patterns: whole lines, none missing, none too many.
#include "node/labels/labels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace gantry::labels {
namespace {

struct Form {
  const char* key;
  const char* value;
};

constexpr const char* kNumber = "[0-9]+";
constexpr const char* kSharing = "none|mps|time-slicing";
constexpr const char* kProduct = "[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?";

std::vector<Form> common() {
  return {{"gfd.timestamp", "[0-9]{10}"},
          {"cuda.driver.major", kNumber},
          {"cuda.driver.minor", kNumber},
          {"cuda.driver.rev", "[0-9]*"},
          {"cuda.runtime.major", kNumber},
          {"cuda.runtime.minor", kNumber},
          {"cuda.driver-version.major", kNumber},
          {"cuda.driver-version.minor", kNumber},
          {"cuda.driver-version.revision", "[0-9]*"},
          {"cuda.driver-version.full", "[0-9]+\\.[0-9]+(\\.[0-9]+)?"},
          {"cuda.runtime-version.major", kNumber},
          {"cuda.runtime-version.minor", kNumber},
          {"cuda.runtime-version.full", "[0-9]+\\.[0-9]+"},
          {"gpu.machine", kProduct},
          {"gpu.count", kNumber},
          {"gpu.replicas", kNumber},
          {"gpu.sharing-strategy", kSharing},
          {"gpu.product", kProduct},
          {"gpu.memory", kNumber},
          {"gpu.family", "maxwell|pascal|volta|turing|ampere|ada-lovelace|hopper|blackwell"},
          {"gpu.mode", "unknown|compute|graphics"},
          {"gpu.compute.major", kNumber},
          {"gpu.compute.minor", kNumber},
          {"mig.capable", "true|false"},
          {"mps.capable", "true|false"},
          {"vgpu.present", "true|false"}};
}

std::vector<Form> instance(const char* product_prefix) {
  static std::set<std::string> keep;
  std::vector<Form> forms;
  for (const auto* key : {"memory", "multiprocessors", "slices.gi", "slices.ci", "engines.copy",
                          "engines.decoder", "engines.encoder", "engines.jpeg", "engines.ofa"}) {
    forms.push_back({keep.insert(std::string(product_prefix) + key).first->c_str(), kNumber});
  }
  return forms;
}

void expect_form(const Labels& labels, const std::vector<Form>& forms) {
  std::set<std::string> left;
  for (const auto& [key, value] : labels) left.insert(key);
  for (const auto& form : forms) {
    const auto key = std::string("nvidia.com/") + form.key;
    const auto found = labels.find(key);
    if (found == labels.end()) {
      ADD_FAILURE() << key << " is missing";
      continue;
    }
    EXPECT_TRUE(std::regex_match(found->second, std::regex(form.value)))
        << key << "=" << found->second;
    left.erase(key);
  }
  EXPECT_THAT(left, ::testing::IsEmpty());
  for (const auto& [key, value] : labels) {
    EXPECT_TRUE(std::regex_match(key, std::regex("nvidia\\.com/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}"
                                                 "[A-Za-z0-9])?")))
        << key;
    EXPECT_LE(value.size(), 63U);
  }
}

model::Inventory machine(int divided_gpus, std::initializer_list<const char*> profiles) {
  model::Inventory inventory;
  inventory.driver = {.version = "580.159.04", .cuda_version = "13.0"};
  for (int i = 0; i < 2; ++i) {
    auto& gpu = inventory.gpus.emplace_back();
    gpu.name = "NVIDIA H200";
    gpu.memory_bytes = std::uint64_t{143771} << 20U;
    gpu.compute_capability = {9, 0};
    gpu.mig.current = i < divided_gpus ? model::MigMode::Enabled : model::MigMode::Disabled;
    if (i >= divided_gpus) continue;
    for (const auto* profile : profiles) {
      auto& mig = gpu.mig.instances.emplace_back();
      mig.profile = profile;
      mig.memory_bytes = std::uint64_t{16384} << 20U;
    }
  }
  return inventory;
}

constexpr std::int64_t kTime = 1'724'632'719;

TEST(ExpectedForms, MigNone) {
  expect_form(make_labels(machine(0, {}), {.machine = "x", .timestamp = kTime}), common());
}

TEST(ExpectedForms, MigSingle) {
  auto forms = common();
  for (const auto& form : instance("gpu.")) {
    if (std::string_view(form.key) != "gpu.memory") forms.push_back(form);
  }
  forms.push_back({"mig.strategy", "single"});
  expect_form(make_labels(machine(2, {"1g.18gb", "1g.18gb"}),
                          {.mig = MigStrategy::Single, .machine = "x", .timestamp = kTime}),
              forms);
}

TEST(ExpectedForms, MigMixed) {
  auto forms = common();
  forms.push_back({"mig.strategy", "mixed"});
  for (const auto* prefix : {"mig-1g.18gb.", "mig-3g.71gb."}) {
    for (const auto& form : instance(prefix)) forms.push_back(form);
  }
  for (const auto& [key, value] :
       std::initializer_list<Form>{{"mig-1g.18gb.count", kNumber},
                                   {"mig-1g.18gb.product", kProduct},
                                   {"mig-1g.18gb.replicas", kNumber},
                                   {"mig-1g.18gb.sharing-strategy", kSharing},
                                   {"mig-3g.71gb.count", kNumber},
                                   {"mig-3g.71gb.product", kProduct},
                                   {"mig-3g.71gb.replicas", kNumber},
                                   {"mig-3g.71gb.sharing-strategy", kSharing}}) {
    forms.push_back({key, value});
  }
  expect_form(make_labels(machine(1, {"1g.18gb", "3g.71gb"}),
                          {.mig = MigStrategy::Mixed, .machine = "x", .timestamp = kTime}),
              forms);
}

TEST(ExpectedForms, Vgpu) {
  auto forms = common();
  forms.push_back({"vgpu.host-driver-version", "[0-9]+\\.[0-9]+(\\.[0-9]+)?"});
  forms.push_back({"vgpu.host-driver-branch", "r[0-9]+_[0-9]+"});
  expect_form(
      make_labels(machine(0, {}),
                  {.machine = "x", .timestamp = kTime, .vgpu = VgpuHost{"550.54.16", "r550_40"}}),
      forms);
}

}  // namespace
}  // namespace gantry::labels
