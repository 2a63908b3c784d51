// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/state_file.hpp"

#include "support/machine.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>

namespace gantry::sim {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::string nvml_of(const test::Machine& machine) {
  return read_marker(machine.root())->nvml_library;
}

// Writes over four bytes of the image in the NVML library.
void damage(const test::Machine& machine, std::size_t offset_in_image, std::uint32_t value) {
  const auto fd = *machine.host().open(nvml_of(machine), O_RDWR);
  const auto end = ::lseek(fd.get(), 0, SEEK_END);
  const auto image = end - static_cast<off_t>(sizeof(gantry_sim_footer) + sizeof(gantry_sim_image));
  ASSERT_EQ(::pwrite(fd.get(), &value, sizeof value, image + static_cast<off_t>(offset_in_image)),
            static_cast<ssize_t>(sizeof value));
}

TEST(StateFile, ALockThatIsNeverReleasedIsBusyAndReadingNeedsNone) {
  const test::Machine machine("h200");
  const auto holder = *machine.host().open(nvml_of(machine), O_RDONLY);
  ASSERT_EQ(::flock(holder.get(), LOCK_EX), 0);
  const auto file = StateFile::open(machine.root(), milliseconds(20));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), Errc::Busy);
  EXPECT_THAT(file.error().text(), HasSubstr("another process holds the lock"));
  const auto seen = StateFile::look(machine.root());
  ASSERT_TRUE(seen.ok()) << seen.error().text();
  EXPECT_STREQ(seen->machine().name, "h200");
}

TEST(StateFile, AFifoInPlaceOfALibraryIsAnErrorAtOnce) {
  const test::Machine machine("h200");
  const auto path = machine.path(nvml_of(machine));
  ASSERT_EQ(std::rename(path.c_str(), (path + ".old").c_str()), 0);
  ASSERT_EQ(::mkfifo(path.c_str(), 0644), 0);
  EXPECT_EQ(StateFile::open(machine.root()).error().code(), Errc::Corrupt);
  EXPECT_EQ(StateFile::look(machine.root()).error().code(), Errc::Corrupt);
}

TEST(StateFile, AMachineWithTooManyProfilesIsDamaged) {
  const test::Machine machine("h200");
  damage(machine,
         offsetof(gantry_sim_image, machine) + offsetof(gantry_sim_machine, gpu) +
             offsetof(gantry_sim_gpu, mig_profile_count),
         1000);
  const auto file = StateFile::open(machine.root());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), Errc::Corrupt);
}

TEST(StateFile, CountsOfTheStateStayInsideTheirArrays) {
  const test::Machine machine("h200");
  constexpr auto kState = offsetof(gantry_sim_image, state);
  constexpr auto kMig =
      kState + offsetof(gantry_sim_state, gpu) + offsetof(gantry_sim_gpu_state, mig);
  damage(machine, kState + offsetof(gantry_sim_state, fault_count), 1000);
  damage(machine, kMig + offsetof(gantry_sim_mig_instance, profile), 1000);
  damage(machine, kMig + offsetof(gantry_sim_mig_instance, ci_count), 1000);
  auto file = StateFile::look(machine.root());
  ASSERT_TRUE(file.ok()) << file.error().text();
  EXPECT_EQ(file->state().fault_count, std::uint32_t{GANTRY_SIM_MAX_FAULTS});
  EXPECT_EQ(file->state().gpu[0].mig[0].profile, 0U);
  EXPECT_EQ(file->state().gpu[0].mig[0].ci_count, std::uint32_t{GANTRY_SIM_MAX_MIG_INSTANCES});
}

}  // namespace
}  // namespace gantry::sim
