// SPDX-License-Identifier: Apache-2.0
#include "node/options/options.hpp"

#include "base/core/text.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace gantry::options {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

struct TestInputs {
  std::map<std::string, std::string, std::less<>> environment;
  std::map<std::string, std::string, std::less<>> files;
};

Result<ParsedOptions> read(Program program, const std::vector<std::string>& arguments,
                           const TestInputs& inputs = {}) {
  return read_options(
      program, arguments,
      [&](std::string_view name) -> std::optional<std::string> {
        const auto found = inputs.environment.find(name);
        if (found == inputs.environment.end()) return std::nullopt;
        return found->second;
      },
      [&](const std::string& path) -> Result<std::string> {
        const auto found = inputs.files.find(path);
        if (found == inputs.files.end()) return Error(Errc::NotFound, path + " is not there");
        return found->second;
      });
}

TEST(Options, WithoutAnythingAreTheDefaults) {
  const auto got = read(Program::Agent, {});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->options, Options{});
}

TEST(Options, EveryNameOfTheTableIsThereOnce) {
  std::set<std::string_view> flags;
  std::set<std::string_view> variables;
  std::set<std::string_view> keys;
  for (const auto& option : option_table()) {
    for (const auto name : split(option.flags, '|')) EXPECT_TRUE(flags.insert(name).second) << name;
    for (const auto name : split(option.environment, '|'))
      EXPECT_TRUE(variables.insert(name).second) << name;
    if (!option.key.empty()) {
      EXPECT_TRUE(keys.insert(option.key).second) << option.key;
    }
    EXPECT_NE(option.programs & bit_of(Program::Agent), 0) << "the agent takes everybody's";
    EXPECT_FALSE(option.meaning.empty());
  }
}

// The names of NVIDIA's plugin 0.20, so that one that is taken out of the table is missed.
TEST(Options, OfNvidiasPluginAreAllThere) {
  for (const auto* flag : {"mig-strategy",
                           "fail-on-init-error",
                           "driver-root",
                           "nvidia-driver-root",
                           "dev-root",
                           "nvidia-dev-root",
                           "pass-device-specs",
                           "device-list-strategy",
                           "device-id-strategy",
                           "gdrcopy-enabled",
                           "gds-enabled",
                           "mofed-enabled",
                           "cdi-annotation-prefix",
                           "nvidia-cdi-hook-path",
                           "nvidia-ctk-path",
                           "driver-root-ctr-path",
                           "container-driver-root",
                           "mps-root",
                           "shared-devices-allocation-policy",
                           "device-discovery-strategy",
                           "imex-channel-ids",
                           "imex-required",
                           "kubelet-socket",
                           "config-file",
                           "cdi-feature-flags",
                           "cdi-disable-hooks"}) {
    EXPECT_THAT(help_text(Program::Plugin), HasSubstr(fmt::format("--{}", flag)));
  }
}

// A text that this option takes and that is not its default.
std::string other_value(const Option& option) {
  for (const auto* text : {"false", "true", "mixed", "7", "90s", "index", "packed", "nvml", "json",
                           "cdi-cri", "0", "video", "MiB"}) {
    const auto flag =
        option.flags.empty()
            ? read(Program::Agent, {}, {.environment = {{std::string(option.environment), text}}})
            : read(Program::Agent, {fmt::format("--{}={}", split(option.flags, '|')[0], text)},
                   {.files = {{text, "version: v1"}}});
    if (flag.ok() && value_text(option, flag->options) == text &&
        value_text(option, Options{}) != text)
      return text;
  }
  return {};
}

// "a.b.c" and x: {a: {b: {c: x}}}
std::string nested(std::string_view key, const std::string& value) {
  std::string text = "version: v1\n";
  std::string indent;
  for (const auto part : split(key, '.')) {
    text += fmt::format("{}{}:\n", indent, part);
    indent += "  ";
  }
  return text + indent + value + "\n";
}

TEST(Options, EachIsSetByEachOfItsNames) {
  for (const auto& option : option_table()) {
    const auto text = other_value(option);
    ASSERT_FALSE(text.empty()) << option.flags << option.environment;
    const std::map<std::string, std::string, std::less<>> files{{text, "version: v1"}};
    for (const auto name : split(option.environment, '|')) {
      const auto got =
          read(Program::Agent, {}, {.environment = {{std::string(name), text}}, .files = files});
      EXPECT_TRUE(got.ok() && value_text(option, got->options) == text) << name;
    }
    for (const auto name : split(option.flags, '|')) {
      const auto got = read(Program::Agent, {fmt::format("--{}", name), text}, {.files = files});
      if (value_text(option, Options{}) == "true" || value_text(option, Options{}) == "false") {
        continue;  // switches take their value after = alone
      }
      EXPECT_TRUE(got.ok() && value_text(option, got->options) == text) << name;
    }
    if (option.key.empty()) continue;
    Options options;
    const auto done = apply_file(nested(option.key, text), "c.yaml", options);
    EXPECT_TRUE(done.ok() && value_text(option, options) == text) << option.key;
  }
}

TEST(Options, FlagWinsOverEnvironmentOverFileOverDefault) {
  TestInputs inputs{.files = {{"/c.yaml", "version: v1\nflags: {migStrategy: single}\n"}}};
  const std::vector<std::string> with_file{"--config-file", "/c.yaml"};
  EXPECT_EQ(read(Program::Plugin, with_file, inputs)->options.mig_strategy, MigStrategy::Single);
  inputs.environment["MIG_STRATEGY"] = "mixed";
  EXPECT_EQ(read(Program::Plugin, with_file, inputs)->options.mig_strategy, MigStrategy::Mixed);
  EXPECT_EQ(read(Program::Plugin, {"--config-file=/c.yaml", "--mig-strategy=none"}, inputs)
                ->options.mig_strategy,
            MigStrategy::None);
}

TEST(Options, OfFeatureDiscoveryAreItsOwnBeforeTheSharedOnes) {
  const TestInputs inputs{
      .environment = {{"GFD_MIG_STRATEGY", "single"}, {"MIG_STRATEGY", "mixed"}}};
  EXPECT_EQ(read(Program::FeatureDiscovery, {}, inputs)->options.mig_strategy, MigStrategy::Single);
  EXPECT_EQ(read(Program::Plugin, {}, inputs)->options.mig_strategy, MigStrategy::Mixed);
}

TEST(Options, AddUpInLists) {
  const auto got =
      read(Program::Plugin, {"--device-list-strategy=envvar", "--device-list-strategy", "cdi-cri"});
  EXPECT_THAT(got->options.list_strategies,
              ElementsAre(ListStrategy::EnvVar, ListStrategy::CdiCri));
  EXPECT_THAT(
      read(Program::Plugin, {}, {.environment = {{"DEVICE_LIST_STRATEGY", "cdi-cri,direct"}}})
          .error()
          .text(),
      HasSubstr("direct"));
}

TEST(Options, UnknownOnesAreErrorsWithTheNearestOne) {
  const auto got = read(Program::Plugin, {"--mig-stratagy=single"});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Invalid);
  EXPECT_THAT(got.error().text(), HasSubstr("did you mean `--mig-strategy`?"));
  EXPECT_FALSE(read(Program::Plugin, {"positional"}).ok());
  EXPECT_FALSE(read(Program::Plugin, {"--" + std::string(100'000, 'x')}).ok());
  EXPECT_FALSE(read(Program::Plugin, {"-host-path=/x"}).ok()) << "GKE's, not NVIDIA's";
}

TEST(Options, WithAWrongValueSayWhatIsPossible) {
  EXPECT_THAT(read(Program::Plugin, {"--mig-strategy=some"}).error().text(),
              HasSubstr("none, single or mixed"));
  EXPECT_THAT(read(Program::Plugin, {"--pass-device-specs=yes"}).error().text(),
              HasSubstr("true or false"));
  EXPECT_THAT(read(Program::Plugin, {"--mps-root"}).error().text(), HasSubstr("needs a value"));
  EXPECT_THAT(read(Program::Plugin, {"--imex-channel-ids=3"}).error().text(),
              HasSubstr("only channel 0"));
}

TEST(Options, ThatThisVersionCannotHonourAreRefusedWithAWayOut) {
  for (const auto program : {Program::Agent, Program::Plugin, Program::FeatureDiscovery}) {
    for (const auto* strategy : {"vfio", "tegra"}) {
      const auto got = read(program, {fmt::format("--device-discovery-strategy={}", strategy)});
      ASSERT_FALSE(got.ok());
      EXPECT_EQ(got.error().code(), Errc::Unsupported);
      EXPECT_THAT(got.error().text(), AllOf(HasSubstr(strategy), HasSubstr("Write auto or nvml")));
    }
    EXPECT_TRUE(read(program, {"--device-discovery-strategy=nvml"}).ok());
  }
}

TEST(Options, OfNvidiasProgramsLetThemExitWithoutADriverAndOursWait) {
  EXPECT_TRUE(read(Program::Plugin, {})->options.fail_on_init_error);
  EXPECT_TRUE(read(Program::FeatureDiscovery, {})->options.fail_on_init_error);
  EXPECT_FALSE(read(Program::Agent, {})->options.fail_on_init_error);
  EXPECT_TRUE(read(Program::Agent, {"--fail-on-init-error"})->options.fail_on_init_error);
  const TestInputs inputs{.environment = {{"FAIL_ON_INIT_ERROR", "false"}}};
  EXPECT_FALSE(read(Program::Plugin, {}, inputs)->options.fail_on_init_error);
  EXPECT_THAT(help_text(Program::Plugin), HasSubstr("FAIL_ON_INIT_ERROR] (default true)"));
}

TEST(Options, OfFeatureDiscoveryNeedNoDirectoryForMps) {
  const TestInputs inputs{
      .files = {
          {"/c.yaml", "version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n"}}};
  const auto got = read(Program::FeatureDiscovery, {"--config-file=/c.yaml"}, inputs);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->options.sharing.kind, SharingKind::Mps);
  EXPECT_FALSE(read(Program::Plugin, {"--config-file=/c.yaml"}, inputs).ok());
}

TEST(Options, OfGkeAreTakenWithOneDashAndWithKlogs) {
  const auto got = read(Program::Gke, {"-logtostderr", "-v=10", "--host-path=/home/nvidia",
                                       "--enable-container-gpu-metrics", "-alsologtostderr=false",
                                       "--log-backtrace-at=a.go:1", "-stderrthreshold", "INFO"});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->options.log.verbosity, 10);
  EXPECT_EQ(got->options.gke.host_path, "/home/nvidia");
  EXPECT_TRUE(got->options.gke.container_gpu_metrics);
  EXPECT_EQ(got->options.log.backtrace_at, "a.go:1");
}

TEST(Options, AnEmptyVariableIsTheEmptyTextAndNothingElse) {
  const auto got = read(Program::Plugin, {},
                        {.environment = {{"KUBELET_SOCKET", ""}, {"PASS_DEVICE_SPECS", ""}}});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->options.kubelet_socket, "");
  EXPECT_FALSE(got->options.pass_device_specs);
}

TEST(Options, HaveDurationsAsGoWritesThem) {
  const auto interval = [](const std::string& text) {
    return read(Program::FeatureDiscovery, {"--sleep-interval=" + text});
  };
  EXPECT_EQ(interval("1m30s")->options.features.sleep_interval, milliseconds(90'000));
  EXPECT_EQ(interval("0.5s")->options.features.sleep_interval, milliseconds(500));
  EXPECT_EQ(interval("infinite")->options.features.sleep_interval, kInfinite);
  for (const auto* bad : {"60", "", "s", "1x", "9999999999999h", "-1s", "1..5s"})
    EXPECT_FALSE(interval(bad).ok()) << bad;
}

TEST(Options, HelpAndVersionNeedNothingElseToBeRight) {
  EXPECT_TRUE(read(Program::Plugin, {"--help"}, {.environment = {{"MIG_STRATEGY", "x"}}})->help);
  EXPECT_TRUE(read(Program::Plugin, {"--version"})->version);
}

// GANTRY_GOLDEN=write refreshes the table.
TEST(Options, AreAllInTheDocumentation) {
  const std::string path = test::source_dir() + "/docs/agent-options.md";
  std::stringstream read_back;
  read_back << std::ifstream(path).rdbuf();
  const auto text = read_back.str();
  const std::string_view start = "refreshes it -->\n";
  const auto from = text.find(start) + start.size();
  const auto to = text.find("<!-- end of table -->");
  ASSERT_LE(from, to);
  const char* mode = std::getenv("GANTRY_GOLDEN");
  if (mode != nullptr && std::string_view(mode) == "write") {
    std::ofstream(path) << text.substr(0, from) << documentation() << text.substr(to);
    return;
  }
  EXPECT_EQ(text.substr(from, to - from), documentation()) << "GANTRY_GOLDEN=write refreshes it";
}

TEST(GkeConfig, IsReadWhateverTheCaseOfItsKeys) {
  const auto got = parse_gke_config(R"({"gpuPartitionSize": "1g.5gb", "GPUSHARINGCONFIG":
    {"gpuSharingStrategy": "time-sharing", "maxSharedClientsPerGPU": 4}, "HealthCriticalXid": [31]})");
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(*got, (GkeConfig{.partition_size = "1g.5gb",
                             .sharing = SharingKind::TimeSlicing,
                             .clients_per_gpu = 4,
                             .critical_xids = {31}}));
}

TEST(GkeConfig, TheOlderNameCountsWhereItIsSet) {
  const auto got = parse_gke_config(R"({"MaxTimeSharedClientsPerGPU": 10})");
  EXPECT_EQ(got->clients_per_gpu, 10);
  EXPECT_EQ(got->sharing, SharingKind::TimeSlicing);
}

TEST(GkeConfig, HalfASharingIsAnError) {
  EXPECT_FALSE(parse_gke_config(R"({"GPUSharingConfig": {"GPUSharingStrategy": "mps"}})").ok());
  EXPECT_FALSE(parse_gke_config(R"({"GPUSharingConfig": {"MaxSharedClientsPerGPU": 2}})").ok());
  EXPECT_FALSE(parse_gke_config("[]").ok());
}

// The lines of a walk-through, word for word.
TEST(GkeConfig, ThatIsNotThereGivesGpusWholeInGkesWords) {
  const auto got = read(Program::Gke, {"-logtostderr", "-v=10", "--enable-container-gpu-metrics"});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->options.gke_config, GkeConfig{});
  EXPECT_THAT(got->notes,
              ElementsAre("Reading GPU config file: /etc/nvidia/gpu_config.json",
                          "Failed to parse GPU config file /etc/nvidia/gpu_config.json: unable to "
                          "read gpu config file /etc/nvidia/gpu_config.json: open "
                          "/etc/nvidia/gpu_config.json: no such file or directory",
                          "Falling back to default GPU config.", "Using gpu config: {}"));
}

TEST(GkeConfig, ThatCannotBeReadGivesGpusWhole) {
  const auto got = read(Program::Gke, {},
                        {.files = {{"/etc/nvidia/gpu_config.json", "{\"GPUPartitionSize\": 5}"}}});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->options.gke_config, GkeConfig{});
  EXPECT_THAT(got->notes, testing::Contains("Falling back to default GPU config."));
}

TEST(GkeConfig, IsShownWithWhatItSays) {
  const auto got =
      read(Program::Gke, {},
           {.files = {{"/etc/nvidia/gpu_config.json",
                       R"({"GPUPartitionSize": "1g.5gb", "MaxTimeSharedClientsPerGPU": 2})"}}});
  EXPECT_THAT(got->notes, testing::Contains("Using gpu config: {1g.5gb {time-sharing 2}}"));
}

}  // namespace
}  // namespace gantry::options
