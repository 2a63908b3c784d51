// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/journal.hpp"

#include "support/tree.hpp"
#include "vm/vfio/rebind.hpp"

#include <gmock/gmock.h>

namespace gantry::vfio {
namespace {

using model::PciAddress;
using testing::HasSubstr;
using testing::IsEmpty;

Journal whole_journal() {
  const auto gpu = *PciAddress::parse("0000:3b:00.0");
  const auto sound = *PciAddress::parse("0000:3b:00.1");
  Journal journal{.kind = "bind", .targets = {gpu}};
  journal.moves = {{.address = sound,
                    .target = gpu,
                    .id = {.vendor = 0x10de, .device = 0x1aef, .revision = 0xa1},
                    .from_driver = "snd_hda_intel",
                    .to_driver = "vfio-pci",
                    .to_override = "vfio-pci"},
                   {.address = gpu,
                    .target = gpu,
                    .id = {.vendor = 0x10de, .device = 0x2236, .serial = "01-02"},
                    .from_driver = "nvidia",
                    .from_override = "nvidia",
                    .to_driver = "vfio-pci",
                    .to_override = "vfio-pci",
                    .power = "auto"}};
  journal.modules = {"vfio_pci"};
  journal.companions = {"nvidia_uvm"};
  journal.services = {"nvidia-dcgm.service"};
  journal.persistence = {gpu};
  journal.nodes = {"/dev/nvidia0"};
  journal.step = 7;
  journal.backwards = true;
  journal.stuck = {gpu};
  return journal;
}

TEST(Journal, ReadsBackUnchanged) {
  const auto journal = whole_journal();
  const auto again = parse_journal(to_json(journal));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(*again, journal);
}

TEST(Journal, ADriverNameThatLeavesItsDirectoryIsRefused) {
  auto journal = whole_journal();
  journal.moves[0].to_driver = "../../evil";
  const auto parsed = parse_journal(to_json(journal));
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code(), Errc::Corrupt);
  EXPECT_THAT(parsed.error().text(), HasSubstr("driver's name"));
}

TEST(Journal, OtherTextsAreNotJournals) {
  for (const auto* text : {"", "[]", "{}", R"({"version":2,"kind":"bind"})",
                           R"({"version":1,"kind":"eat","targets":["0000:3b:00.0"]})",
                           R"({"version":1,"kind":"bind","targets":[]})",
                           R"({"version":1,"kind":"bind","targets":["x"]})"}) {
    const auto parsed = parse_journal(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code(), Errc::Corrupt) << text;
  }
}

TEST(Journal, TheRecordOfOneGpuNeedsNotToExist) {
  test::Tree tree;
  const auto gpu = *PciAddress::parse("0000:3b:00.0");
  const auto none = read_bound(tree.host(), gpu);
  ASSERT_TRUE(none.ok()) << none.error().text();
  EXPECT_FALSE(*none);
  tree.file("run/gantry/vfio/0000:3b:00.0.bound", to_json(whole_journal()));
  EXPECT_EQ(**read_bound(tree.host(), gpu), whole_journal());
}

TEST(Journal, WithoutADirectoryThereAreNone) {
  const test::Tree tree;
  const auto journals = read_journals(tree.host());
  ASSERT_TRUE(journals.ok()) << journals.error().text();
  EXPECT_THAT(*journals, IsEmpty());
}

TEST(Steps, TheOverrideComesBeforeTheUnbindAndTheGpuIsUnboundLast) {
  const auto journal = whole_journal();
  std::vector<std::string> texts;
  for (const auto& step : steps_of(journal)) texts.push_back(describe(journal, step));
  const auto place = [&](const std::string& text) {
    return std::find(texts.begin(), texts.end(), text) - texts.begin();
  };
  EXPECT_LT(place("reserve 0000:3b:00.0 for vfio-pci (driver_override)"),
            place("unbind 0000:3b:00.1 from snd_hda_intel"));
  EXPECT_LT(place("unbind 0000:3b:00.1 from snd_hda_intel"),
            place("unbind 0000:3b:00.0 from nvidia"));
  EXPECT_LT(place("bind 0000:3b:00.0 to vfio-pci"), place("bind 0000:3b:00.1 to vfio-pci"));
  EXPECT_LT(place("bind 0000:3b:00.1 to vfio-pci"), place("start nvidia-dcgm.service"));
  EXPECT_EQ(place("start nvidia-dcgm.service"), static_cast<std::ptrdiff_t>(texts.size()) - 1);
}

}  // namespace
}  // namespace gantry::vfio
