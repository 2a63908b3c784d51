// SPDX-License-Identifier: Apache-2.0
#include "node/metrics/pages.hpp"

#include "base/core/text.hpp"
#include "node/metrics/snapshot_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace gantry::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// The lines of one name, without its head.
std::vector<std::string> series(const std::string& page, std::string_view name) {
  std::vector<std::string> found;
  for (const auto line : lines(page)) {
    if (line.starts_with(name) && (line[name.size()] == '{' || line[name.size()] == ' '))
      found.emplace_back(line);
  }
  return found;
}

std::vector<std::string> with(const std::vector<std::string>& list, std::string_view part) {
  std::vector<std::string> found;
  for (const auto& line : list) {
    if (contains(line, part)) found.push_back(line);
  }
  return found;
}

void expect_value(const std::string& page, std::string_view name, std::string_view part,
                  std::string_view value) {
  const auto found = with(series(page, name), part);
  ASSERT_EQ(found.size(), 1U) << name << " " << part;
  EXPECT_EQ(found[0].substr(found[0].rfind(' ') + 1), value) << found[0];
}

// The scene of GKE's own test: two pods with one and two GPUs, a fourth GPU unused.
Snapshot gke_scene() {
  auto snapshot = machine_for_test(4);
  for (std::size_t i = 0; i < 4; ++i) {
    auto& gpu = snapshot.readings.gpus[i];
    gpu.duty_cycle_percent = std::array{78, 32, 13, 5}[i];
    gpu.memory_total_bytes = 200 * (i + 1);
    gpu.memory_used_bytes = 50 * (i + 1);
  }
  snapshot.holders = {hold("default", "pod1", "container1", {"nvidia0"}),
                      hold("non-default", "pod2", "container2", {"nvidia1", "nvidia2"})};
  return snapshot;
}

TEST(GkePage, HasTheSevenGaugesOfItsOwnTest) {
  const auto page = gke_page(gke_scene());
  expect_value(page, "request", "pod=\"pod1\"", "1");
  expect_value(page, "request", "pod=\"pod2\"", "2");
  expect_value(page, "duty_cycle", "accelerator_id=\"GPU-0\"", "78");
  expect_value(page, "duty_cycle", "accelerator_id=\"GPU-1\"", "32");
  expect_value(page, "duty_cycle", "accelerator_id=\"GPU-2\"", "13");
  expect_value(page, "memory_total", "accelerator_id=\"GPU-1\"", "400");
  expect_value(page, "memory_used", "accelerator_id=\"GPU-1\"", "100");
  EXPECT_THAT(series(page, "duty_cycle"), SizeIs(3));
  expect_value(page, "duty_cycle_gpu_node", "accelerator_id=\"GPU-3\"", "5");
  expect_value(page, "memory_total_gpu_node", "accelerator_id=\"GPU-3\"", "800");
  expect_value(page, "memory_used_gpu_node", "accelerator_id=\"GPU-3\"", "200");
  EXPECT_THAT(series(page, "memory_used_gpu_node"), SizeIs(4));
}

TEST(GkePage, LabelsAreGkes) {
  const auto page = gke_page(gke_scene());
  EXPECT_THAT(page, HasSubstr("duty_cycle{namespace=\"default\",pod=\"pod1\",container="
                              "\"container1\",make=\"nvidia\",accelerator_id=\"GPU-0\",model="
                              "\"NVIDIA H200\"} 78\n"));
  EXPECT_THAT(page, HasSubstr("request{namespace=\"default\",pod=\"pod1\",container=\"container1\","
                              "resource_name=\"nvidia.com/gpu\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("duty_cycle_gpu_node{make=\"nvidia\",accelerator_id=\"GPU-3\",model="
                              "\"NVIDIA H200\"} 5\n"));
}

TEST(DcgmPage, HasTheLabelFormOfTheExporter) {
  auto snapshot = machine_for_test(2);
  snapshot.holders = {hold("ns", "train-0", "main", {"GPU-1"})};
  const auto page = dcgm_page(snapshot);
  EXPECT_THAT(page, HasSubstr("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-0\",pci_bus_id="
                              "\"00000000:1A:00.0\",device=\"nvidia0\",modelName=\"NVIDIA H200\","
                              "hostname=\"node-1\",DCGM_FI_DRIVER_VERSION=\"580.159.04\"} 40\n"));
  EXPECT_THAT(page, HasSubstr("device=\"nvidia1\",modelName=\"NVIDIA H200\",hostname=\"node-1\","
                              "DCGM_FI_DRIVER_VERSION=\"580.159.04\",container=\"main\","
                              "namespace=\"ns\",pod=\"train-0\"} 41\n"));
  expect_value(page, "DCGM_FI_DEV_POWER_USAGE", "gpu=\"0\"", "76.5");
  expect_value(page, "DCGM_FI_DEV_FB_USED", "gpu=\"0\"", "1024");
  expect_value(page, "DCGM_FI_DEV_XID_ERRORS", "gpu=\"0\"", "0");
}

TEST(DcgmPage, UnknownValuesHaveNoSeries) {
  auto snapshot = machine_for_test(1);
  snapshot.readings.gpus[0].memory_temperature_celsius.reset();
  const auto page = dcgm_page(snapshot);
  EXPECT_THAT(page, Not(HasSubstr("DCGM_FI_DEV_MEMORY_TEMP")));
  EXPECT_THAT(page, Not(HasSubstr("DCGM_FI_PROF_")));
  snapshot.readings.gpus[0].profile.tensor_active = 0.25;
  expect_value(dcgm_page(snapshot), "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gpu=\"0\"", "0.25");
}

TEST(DcgmPage, ALostGpuHasNoSeriesAndTheOthersDo) {
  auto snapshot = machine_for_test(2);
  snapshot.readings.gpus[0].lost = "gone";
  EXPECT_THAT(series(dcgm_page(snapshot), "DCGM_FI_DEV_GPU_TEMP"), SizeIs(1));
}

TEST(DcgmPage, AnInstanceHasItsOwnMemoryAndItsPod) {
  auto snapshot = machine_for_test(1);
  divide(snapshot, 0, 2);
  snapshot.holders = {hold("ns", "a", "main", {"MIG-0-1"}, "nvidia.com/mig-1g.18gb")};
  const auto page = dcgm_page(snapshot);
  const auto used = series(page, "DCGM_FI_DEV_FB_USED");
  ASSERT_THAT(used, SizeIs(2));
  EXPECT_THAT(used[0], HasSubstr("GPU_I_PROFILE=\"1g.18gb\",GPU_I_ID=\"7\""));
  EXPECT_THAT(used[0], Not(HasSubstr("pod=")));
  EXPECT_THAT(used[1], HasSubstr("pod=\"a\"} 101"));
  EXPECT_THAT(series(page, "DCGM_FI_DEV_GPU_TEMP"), SizeIs(2)) << "the card's, for each";
  EXPECT_THAT(series(page, "DCGM_FI_DEV_GPU_UTIL"), IsEmpty()) << "the card's is not theirs";
}

TEST(DcgmPage, OnASharedCardEachPodHasItsOwnUse) {
  auto snapshot = machine_for_test(1);
  share(snapshot, 4);
  snapshot.holders = {
      hold("ns", "a", "main", {"GPU-0::0"}, "nvidia.com/gpu.shared", "uid-a"),
      hold("ns", "b", "main", {"GPU-0::1", "GPU-0::3"}, "nvidia.com/gpu.shared", "uid-b"),
      hold("ns", "c", "main", {"GPU-0::2"}, "nvidia.com/gpu.shared")};
  snapshot.readings.gpus[0].processes = {
      {.pid = 1, .memory_bytes = 300 << 20, .utilization_percent = 40, .pod_uid = "uid-a"},
      {.pid = 2, .memory_bytes = 200 << 20, .utilization_percent = 70, .pod_uid = "uid-a"},
      {.pid = 3, .memory_bytes = 900 << 20, .utilization_percent = 1}};
  const auto page = dcgm_page(snapshot);
  expect_value(page, "DCGM_FI_DEV_FB_USED", "pod=\"a\"", "500");
  expect_value(page, "DCGM_FI_DEV_GPU_UTIL", "pod=\"a\"", "100");
  expect_value(page, "DCGM_FI_DEV_FB_USED", "pod=\"b\"", "0");
  EXPECT_THAT(with(series(page, "DCGM_FI_DEV_FB_USED"), "pod=\"c\""), IsEmpty())
      << "which processes are its own is unknown";
  EXPECT_THAT(series(page, "DCGM_FI_DEV_GPU_TEMP"), SizeIs(3)) << "one for each pod";
  const auto gke = gke_page(snapshot);
  expect_value(gke, "memory_used", "pod=\"a\"", "524288000");
  expect_value(gke, "request", "pod=\"b\"", "2");
}

TEST(Attribute, KnowsEveryFormOfId) {
  auto snapshot = machine_for_test(2);
  divide(snapshot, 1, 2);
  const std::vector<std::tuple<const char*, const char*, const char*, bool>> cases{
      {"GPU-0", "GPU-0", "", false},
      {"GPU-0::3", "GPU-0", "", true},
      {"MIG-1-0", "GPU-1", "MIG-1-0", false},
      {"MIG-1-1::2", "GPU-1", "MIG-1-1", true},
      {"nvidia0", "GPU-0", "", false},
      {"nvidia0/vgpu2", "GPU-0", "", true},
      {"nvidia1/gi8", "GPU-1", "MIG-1-1", false},
      {"nvidia1/gi8/vgpu0", "GPU-1", "MIG-1-1", true}};
  for (const auto& [id, gpu, mig, shared] : cases) {
    snapshot.holders = {hold("ns", "p", "c", {id})};
    const auto list = attribute_devices(snapshot);
    ASSERT_THAT(list, SizeIs(1)) << id;
    EXPECT_EQ(list[0].gpu.text, gpu) << id;
    EXPECT_EQ(list[0].mig.text, mig) << id;
    EXPECT_EQ(list[0].shared, shared) << id;
  }
  for (const auto* id :
       {"", "nvidia", "nvidia9", "nvidia1/gi99", "GPU-9", "MIG-9", "::", "x/y/z"}) {
    snapshot.holders = {hold("ns", "p", "c", {id})};
    EXPECT_THAT(attribute_devices(snapshot), IsEmpty()) << id;
  }
}

TEST(OwnMetrics, CountAndMeasure) {
  auto snapshot = machine_for_test(2);
  snapshot.offered[0].devices[0].id = "GPU-0";
  snapshot.holders = {hold("ns", "p", "c", {"GPU-0"})};
  snapshot.health[1].usable = false;
  auto& counters = snapshot.counters;
  counters.allocations[{"nvidia.com/gpu", Outcome::Ok}] = 7;
  counters.allocate_seconds["nvidia.com/gpu"].add(0.0003);
  counters.allocate_seconds["nvidia.com/gpu"].add(20);
  counters.xids[{{"GPU-1"}, 79}] = 2;
  counters.last_xid[{"GPU-1"}] = 79;
  const auto page = dcgm_page(snapshot);
  expect_value(page, "gantry_allocations_total", "outcome=\"ok\"", "7");
  expect_value(page, "gantry_gpu_usable", "gpu=\"GPU-1\"", "0");
  expect_value(page, "gantry_devices", "nvidia.com/gpu", "2");
  expect_value(page, "gantry_devices_usable", "nvidia.com/gpu", "1");
  expect_value(page, "gantry_devices_held", "nvidia.com/gpu", "1");
  expect_value(page, "gantry_xid_events_total", "xid=\"79\"", "2");
  expect_value(page, "DCGM_FI_DEV_XID_ERRORS", "gpu=\"1\"", "79");
  expect_value(page, "gantry_allocate_duration_seconds_bucket", "le=\"0.00025\"", "0");
  expect_value(page, "gantry_allocate_duration_seconds_bucket", "le=\"0.0005\"", "1");
  expect_value(page, "gantry_allocate_duration_seconds_bucket", "le=\"+Inf\"", "2");
  expect_value(page, "gantry_allocate_duration_seconds_count", "", "2");
}

TEST(Pages, EscapeWhatOthersNamed) {
  auto snapshot = machine_for_test(1);
  snapshot.inventory.gpus[0].name = "a\"b\\c\nd";
  snapshot.holders = {hold("ns", "\xff\xfe", "c", {"GPU-0"})};
  const auto page = dcgm_page(snapshot);
  EXPECT_THAT(page, HasSubstr("modelName=\"a\\\"b\\\\c\\nd\""));
  EXPECT_THAT(page, HasSubstr("pod=\"??\""));
}

TEST(Pages, SayEachNameOnceAndBeforeItsSeries) {
  auto snapshot = busy_machine_for_test();
  for (const auto& page : {gke_page(snapshot), dcgm_page(snapshot)}) {
    std::map<std::string, int> helps;
    std::set<std::string> closed;
    std::string current;
    for (const auto line : lines(page)) {
      if (line.starts_with("# HELP ")) {
        const auto name = std::string(split(line, ' ')[2]);
        EXPECT_EQ(++helps[name], 1) << name;
        current = name;
      } else if (!line.starts_with("#")) {
        EXPECT_TRUE(line.starts_with(current)) << line;
      }
    }
  }
}

TEST(Pages, EveryNameIsListed) {
  const auto names = metric_names();
  const std::set<std::string_view> known(names.begin(), names.end());
  EXPECT_EQ(known.size(), names.size()) << "none twice";
  auto snapshot = busy_machine_for_test();
  for (const auto& page : {gke_page(snapshot), dcgm_page(snapshot)}) {
    for (const auto line : lines(page)) {
      EXPECT_TRUE(!line.starts_with("# HELP ") || known.contains(split(line, ' ')[2])) << line;
    }
  }
}

TEST(Pages, NeverGrowBeyondTheirLimit) {
  auto snapshot = machine_for_test(8);
  for (int i = 0; i < 1000; ++i) {
    snapshot.holders.push_back(hold(std::string(60, 'n'), std::string(200, 'p') + std::to_string(i),
                                    std::string(60, 'c'), {"GPU-0::0", "GPU-1::0", "GPU-2::0"}));
  }
  const auto page = dcgm_page(snapshot);
  EXPECT_LE(page.size(), kPageLimit);
  const auto left_out = series(page, "gantry_series_left_out");
  ASSERT_THAT(left_out, SizeIs(1));
  EXPECT_NE(left_out[0], "gantry_series_left_out 0");
}

TEST(Pages, OfAMachineWithNothing) {
  EXPECT_THAT(gke_page({}), HasSubstr("gantry_driver_up 0\n"));
  EXPECT_THAT(dcgm_page({}), HasSubstr("gantry_series_left_out 0\n"));
}

}  // namespace
}  // namespace gantry::metrics
