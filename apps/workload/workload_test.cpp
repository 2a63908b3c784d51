// SPDX-License-Identifier: Apache-2.0
#include "device_query/device_query.hpp"
#include "support/captured_output.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"
#include "vector_add/vector_add.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace gantry::workload {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Outcome = test::ProgramResult;

Outcome run(int (*program)(const Options&, std::FILE*, std::FILE*), const Options& options) {
  return test::run_captured(
      [&](std::FILE* out, std::FILE* err) { return program(options, out, err); });
}

constexpr const char* kSixLines =
    "[Vector addition of 50000 elements]\n"
    "Copy input data from the host memory to the CUDA device\n"
    "CUDA kernel launch with 196 blocks of 256 threads\n"
    "Copy output data from the CUDA device to the host memory\n"
    "Test PASSED\n"
    "Done\n";

TEST(VectorAdd, PrintsTheSixLinesOnEveryCard) {
  for (const char* name : {"h200", "a100x8", "t4x4", "k80", "k620", "k2000"}) {
    const test::Machine machine(name);
    const Outcome result = run(vector_add, {.library = machine.cuda_library()});
    EXPECT_EQ(result.out, kSixLines) << name;
    EXPECT_EQ(result.err, "") << name;
    EXPECT_EQ(result.status, 0) << name;
  }
}

TEST(VectorAdd, RunsOnTheDeviceThatIsNamed) {
  const test::Machine machine("h200x8");
  EXPECT_EQ(run(vector_add, {.library = machine.cuda_library(), .device = 7}).status, 0);
  const Outcome none = run(vector_add, {.library = machine.cuda_library(), .device = 8});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("CUDA_ERROR_INVALID_DEVICE, 101"));
}

TEST(VectorAdd, TakesMemoryBesidesAsFarAsThereIsSome) {
  const test::Machine machine("t4x4");
  const Outcome taken = run(vector_add, {.library = machine.cuda_library(), .memory_mib = 4096});
  EXPECT_EQ(taken.out, std::string("[4096 MiB taken]\n") + kSixLines);
  const Outcome more = run(vector_add, {.library = machine.cuda_library(), .memory_mib = 40960});
  EXPECT_EQ(more.status, 1);
  EXPECT_THAT(more.err, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY, 2"));
}

TEST(VectorAdd, BlamesNoProcessForMemoryThatTheCardDoesNotHave) {
  const test::Machine machine("h200");
  const Outcome result = run(vector_add, {.library = machine.cuda_library(), .memory_mib = 200000});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err,
              HasSubstr("cause: 200000 MiB are more than the 143155 MiB that the card"));
  EXPECT_THAT(result.err, Not(HasSubstr("other processes")));
}

TEST(VectorAdd, SaysHowMuchIsFreeIfTheCardIsLargeEnough) {
  const test::Machine machine("h200");
  const Outcome result = run(vector_add, {.library = machine.cuda_library(), .memory_mib = 143155});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, ContainsRegex("143155 MiB are more than the [0-9]+ MiB that are free"));
}

TEST(VectorAdd, SaysSoWhenTheSumsAreWrong) {
  const Outcome result =
      run(vector_add, {.library = test::built("apps/workload/libwrong_cuda.so")});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("Test FAILED\n"), Not(HasSubstr("PASSED")), Not(HasSubstr("Done"))));
  EXPECT_THAT(result.err, AllOf(StartsWith("gantry-vector-add: element 0 is "),
                                HasSubstr("\n  cause: "), HasSubstr("\n  remedy: ")));
}

TEST(VectorAdd, WithoutADriverSaysWhatIsMissing) {
  const Outcome result = run(vector_add, {.library = "/nonexistent/libcuda.so.1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("the CUDA driver library cannot be loaded: /nonexistent"),
                                HasSubstr("remedy: gantry doctor")));
}

TEST(VectorAdd, KnowsALibraryThatIsNotTheDrivers) {
  const Outcome result = run(vector_add, {.library = "libc.so.6"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("libc.so.6 has no cuInit\n"));
}

TEST(VectorAdd, NamesCauseAndRemedyOfEachBrokenMachine) {
  struct Case {
    const char* machine;
    const char* error;
    const char* remedy;
  };
  for (const Case& wanted : {
           Case{"no-nodes",
                "cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, 100)",
                "gantry doctor"},
           Case{"mismatch", "(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)", "modprobe -r nvidia_uvm"},
           Case{"fabric-down", "(CUDA_ERROR_SYSTEM_NOT_READY, 802)",
                "systemctl start nvidia-fabricmanager"},
       }) {
    const test::Machine machine(wanted.machine);
    const Outcome result = run(vector_add, {.library = machine.cuda_library()});
    EXPECT_EQ(result.status, 1) << wanted.machine;
    EXPECT_EQ(result.out, "") << wanted.machine;
    EXPECT_THAT(result.err, AllOf(HasSubstr(wanted.error), HasSubstr(wanted.remedy)));
  }
}

TEST(DeviceQuery, ReportsTheSimulatedH200AsTheRealOne) {
  const test::Machine machine("h200");
  const Outcome result = run(device_query, {.library = machine.cuda_library()});
  std::ifstream measured(test::source_dir() + "/docs/measured/h200/gantry-device-query.txt");
  std::ostringstream expected;
  expected << measured.rdbuf();
  EXPECT_EQ(result.out, expected.str());
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.status, 0);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The recorded output of the sample, without the command before it and the status after it.
std::vector<std::string> recorded_device_query() {
  std::ifstream file(test::source_dir() + "/docs/measured/h200/sample-deviceQuery.txt");
  std::ostringstream text;
  text << file.rdbuf();
  auto lines = lines_of(text.str());
  if (lines.size() < 2) return {};
  return {lines.begin() + 1, lines.end() - 1};
}

TEST(DeviceQuery, ByTheSamplesNameDiffersFromItOnlyWhereTheRuntimeIsNamed) {
  const test::Machine machine("h200");
  const Outcome result =
      run(device_query, {.called = "deviceQuery", .library = machine.cuda_library()});
  EXPECT_EQ(result.status, 0);
  const auto ours = lines_of(result.out);
  const auto theirs = recorded_device_query();
  ASSERT_EQ(ours.size(), theirs.size());
  std::vector<std::string> differing;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] != theirs[i]) differing.push_back(ours[i]);
  }
  EXPECT_THAT(differing,
              ElementsAre(" CUDA Device Query (Driver API) without the CUDA runtime",
                          "  CUDA Driver Version / Runtime Version          13.0 / none",
                          "deviceQuery, CUDA Driver = libcuda, CUDA Driver Version = 13.0, CUDA "
                          "Runtime Version = none, NumDevs = 1"));
}

TEST(DeviceQuery, ByTheSamplesNameShowsWhoReachesWhom) {
  const test::Machine machine("h200x8");
  const Outcome result =
      run(device_query, {.called = "deviceQuery", .library = machine.cuda_library()});
  EXPECT_THAT(result.out,
              HasSubstr("> Peer access from NVIDIA H200 (GPU0) -> NVIDIA H200 (GPU7) : Yes\n"));
  EXPECT_THAT(result.out, HasSubstr(", NumDevs = 8\nResult = PASS\n"));
}

TEST(DeviceQuery, CountsCoresOfTheSeedsCards) {
  struct Case {
    const char* machine;
    const char* line;
  };
  for (const Case& wanted :
       {Case{"k80", "(13) Multiprocessors, (192) CUDA Cores/MP:     2496 CUDA Cores"},
        Case{"k620", "( 3) Multiprocessors, (128) CUDA Cores/MP:     384 CUDA Cores"},
        Case{"k2000", "( 2) Multiprocessors, (192) CUDA Cores/MP:     384 CUDA Cores"},
        Case{"t4x4", "(40) Multiprocessors, ( 64) CUDA Cores/MP:     2560 CUDA Cores"}}) {
    const test::Machine machine(wanted.machine);
    EXPECT_THAT(run(device_query, {.library = machine.cuda_library()}).out, HasSubstr(wanted.line));
  }
}

TEST(DeviceQuery, ShowsWhoReachesWhom) {
  const test::Machine machine("h200x8");
  const Outcome result = run(device_query, {.library = machine.cuda_library()});
  EXPECT_THAT(result.out,
              HasSubstr("> Peer-to-Peer (P2P) access from NVIDIA H200 (GPU0) -> NVIDIA H200 "
                        "(GPU7) : Yes\n"));
}

TEST(DeviceQuery, HasTheNameItWasCalledBy) {
  const Outcome result = run(device_query, {.called = "deviceQuery", .library = "none"});
  EXPECT_THAT(result.out, StartsWith("deviceQuery Starting...\n"));
  EXPECT_THAT(result.err, StartsWith("deviceQuery: "));
}

TEST(DeviceQuery, FailsWithItsLastLineAndAReason) {
  const test::Machine machine("no-nodes");
  const Outcome result = run(device_query, {.library = machine.cuda_library()});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(result.out.ends_with("Result = FAIL\n"));
  EXPECT_THAT(result.err,
              AllOf(StartsWith("gantry-device-query: cuInit: "), HasSubstr("\n  remedy: ")));
}

TEST(RunProgram, ExplainsItselfAndRefusesWhatItDoesNotKnow) {
  bool ran = false;
  const Program program = {
      .about = "about", .examples = "Examples:\n  x", .takes_device = true, .run = [&](auto&&...) {
        ran = true;
        return 7;
      }};
  auto call = [&](std::vector<std::string> words) {
    std::vector<char*> argv;
    argv.reserve(words.size());
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = run_program(program, static_cast<int>(argv.size()), argv.data());
    return std::to_string(status) + ::testing::internal::GetCapturedStdout() +
           ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(call({"p", "--help"}),
              AllOf(StartsWith("0"), HasSubstr("--library"), HasSubstr("Examples:")));
  EXPECT_THAT(call({"p", "--frobnicate"}), AllOf(StartsWith("2"), HasSubstr("--frobnicate")));
  EXPECT_THAT(call({"p", "--device", "-1"}), StartsWith("2"));
  EXPECT_FALSE(ran);
  EXPECT_EQ(call({"p"}), "7");
}

TEST(Workloads, NameThemselvesAsTheyWereCalled) {
  for (const char* name : {"vectorAdd", "deviceQuery"}) {
    std::string error;
    std::string path = std::string("/opt/") + name;
    std::string option = "--library";
    std::string nowhere = "/nowhere/libcuda.so.1";
    char* argv[] = {path.data(), option.data(), nowhere.data(), nullptr};
    const Program program{.about = "",
                          .examples = "",
                          .run = [&](const Options& options, std::FILE* out, std::FILE*) {
                            const test::CapturedOutput err;
                            const int status = std::string_view(name) == "vectorAdd"
                                                   ? vector_add(options, out, err.file())
                                                   : device_query(options, out, err.file());
                            error = err.text();
                            return status;
                          }};
    EXPECT_EQ(run_program(program, 3, argv), 1);
    EXPECT_THAT(error, StartsWith(std::string(name) + ": "));
  }
}

}  // namespace
}  // namespace gantry::workload
