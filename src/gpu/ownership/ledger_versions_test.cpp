// SPDX-License-Identifier: Apache-2.0
// Files of other versions, and cards whose address or UUID changes.
#include "base/core/hash.hpp"
#include "base/json/document.hpp"
#include "gpu/ownership/ownership_store.hpp"
#include "gpu/ownership/state_json_internal.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace gantry::ownership {
namespace {

using model::AllocationMode;
using model::GpuUuid;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const model::PciAddress first_slot{.bus = 0x3b};
const model::PciAddress second_slot{.bus = 0x5e};
const model::PciAddress third_slot{.bus = 0x86};
const GpuUuid card_a{"GPU-a"};
const GpuUuid card_b{"GPU-b"};

struct MigratedTree {
  test::Tree tree;
  OwnershipStore open() const {
    auto ledger = OwnershipStore::open(tree.host());
    EXPECT_TRUE(ledger.ok()) << ledger.error().text();
    return *std::move(ledger);
  }
  std::string content() const { return *tree.host().read(kOwnershipPath); }
  void put(std::string_view content) const {
    std::ofstream(tree.path("var/lib/gantry/ledger"), std::ios::binary | std::ios::trunc)
        << content;
  }
};

void require(const Status& status) {
  ASSERT_TRUE(status.ok()) << status.error().text();
}

std::string record_of(std::string_view body) {
  Hash hash;
  hash.add(body);
  return fmt::format("{:08} {} {}\n", body.size(), hash.text(), body);
}

TEST(LedgerFile, OfALaterVersionIsRefused) {
  const MigratedTree place;
  { require(place.open().adopt(first_slot, card_a, Owner::Vm, AllocationMode::Vm)); }
  place.put(place.content() + record_of(R"({"version":3,"sequence":99,"more":[]})"));
  for (const auto& failed : {OwnershipStore::open(place.tree.host()).error(),
                             OwnershipStore::peek(place.tree.host()).error()}) {
    EXPECT_EQ(failed.code(), Errc::Unsupported);
    EXPECT_THAT(failed.text(), HasSubstr("newer version"));
  }
}

constexpr std::string_view kFormerState =
    R"({"sequence":7,"gpus":[{"gpu":"GPU-a","owner":"vm","use":"vm"},)"
    R"({"gpu":"GPU-b","owner":"plugin","use":"whole"}],)"
    R"("claims":[{"id":"1","owner":"vm","gpu":"GPU-a","mig":"","what":"VM db"}]})";

// What the first version reads: `gpus` must be a list of owners by UUID.
TEST(LedgerFile, MeansNothingToTheFirstVersion) {
  OwnershipState state;
  state.gpus.push_back({.gpu = first_slot, .uuid = card_a, .owner = Owner::Vm});
  const auto document = json::Document::parse(to_json(state));
  ASSERT_TRUE(document.ok());
  const auto read = parse_former_state(document->root());
  ASSERT_FALSE(read.ok()) << "it would take the card for the plugin's";
  EXPECT_EQ(read.error().code(), Errc::Corrupt);
}

TEST(LedgerFile, OfTheFirstVersionIsReadAndRewritten) {
  MigratedTree place;
  place.tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
                  "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
  place.tree.file("var/lib/gantry/ledger", record_of(kFormerState));
  {
    auto ledger = place.open();
    EXPECT_EQ(ledger.state().sequence, 7U);
    ASSERT_NE(ledger.state().find(first_slot), nullptr);
    EXPECT_EQ(ledger.state().find(first_slot)->owner, Owner::Vm);
    ASSERT_THAT(ledger.state().claims, SizeIs(1));
    EXPECT_EQ(ledger.state().claims[0].gpu, first_slot);
    // The driver does not show the other one: it waits for its address.
    ASSERT_THAT(ledger.state().unplaced, SizeIs(1));
    require(ledger.adopt(second_slot, card_b, Owner::Plugin, AllocationMode::Replicas));
    EXPECT_EQ(ledger.state().find(second_slot)->use, AllocationMode::Whole) << "as it was recorded";
    EXPECT_THAT(ledger.state().unplaced, IsEmpty());
  }
  EXPECT_THAT(place.content(), HasSubstr("\"version\":2"));
  EXPECT_THAT(place.content(), Not(HasSubstr("\"gpus\"")));
  EXPECT_EQ(*place.tree.host().read("/var/lib/gantry/ledger.version-1"), record_of(kFormerState));
  EXPECT_EQ(place.open().state().find(first_slot)->owner, Owner::Vm);
}

TEST(LedgerFile, OfTheFirstVersionKeepsAVirtualMachinesGpuWithoutItsDriver) {
  MigratedTree place;
  place.tree.file("var/lib/gantry/ledger", record_of(kFormerState));
  auto ledger = place.open();
  require(ledger.adopt(third_slot, card_a, Owner::Plugin, AllocationMode::Whole));
  EXPECT_EQ(ledger.state().find(third_slot)->owner, Owner::Vm);
  EXPECT_EQ(ledger.claim({.id = "2", .owner = Owner::Vm, .gpu = third_slot, .what = "VM web"})
                .error()
                .code(),
            Errc::Busy)
      << "its holder came with it";
}

TEST(LedgerFile, OfTheFirstVersionKeepsAChangeThatBeganBeforeTheUuidWasSeen) {
  MigratedTree place;
  place.tree.file("var/lib/gantry/ledger", record_of(kFormerState));
  auto ledger = place.open();
  require(ledger.adopt(third_slot, {}, Owner::Plugin, AllocationMode::Whole));
  const OwnerIntent intent{.gpu = third_slot, .to = Owner::Vm, .what = "gantry vfio bind"};
  require(ledger.begin(intent, {.withdrawn = true}));
  require(ledger.adopt(third_slot, card_b, Owner::Plugin, AllocationMode::Whole));
  ASSERT_NE(ledger.state().intent(third_slot), nullptr) << "it would be offered meanwhile";
  require(ledger.finish(intent));
  EXPECT_EQ(ledger.state().find(card_b)->owner, Owner::Vm);
}

TEST(OwnershipStore, LearnsAUuidLater) {
  const MigratedTree place;
  auto ledger = place.open();
  require(ledger.adopt(first_slot, {}, Owner::Vm, AllocationMode::Vm));
  require(ledger.adopt(first_slot, card_a, Owner::Plugin, AllocationMode::Whole));
  EXPECT_EQ(ledger.state().find(card_a), ledger.state().find(first_slot));
  EXPECT_EQ(ledger.state().find(first_slot)->owner, Owner::Vm);
  require(ledger.adopt(first_slot, {}, Owner::Plugin, AllocationMode::Whole));
  EXPECT_EQ(ledger.state().find(first_slot)->uuid, card_a) << "a card on vfio-pci shows no UUID";
  EXPECT_EQ(ledger.state().find(GpuUuid{}), nullptr);
}

TEST(OwnershipStore, AnOwnerMovesWithItsCard) {
  const MigratedTree place;
  auto ledger = place.open();
  require(ledger.adopt(first_slot, card_a, Owner::Vm, AllocationMode::Vm));
  require(ledger.adopt(second_slot, card_b, Owner::Plugin, AllocationMode::Replicas));
  // A new card shifted the bus numbers: A is where B was.
  require(ledger.adopt(second_slot, card_a, Owner::Plugin, AllocationMode::Whole));
  EXPECT_EQ(ledger.state().find(second_slot)->owner, Owner::Vm);
  EXPECT_EQ(ledger.state().find(first_slot), nullptr);
  require(ledger.adopt(first_slot, {"GPU-new"}, Owner::Plugin, AllocationMode::Whole));
  EXPECT_EQ(ledger.state().find(first_slot)->owner, Owner::Plugin);
}

TEST(OwnershipStore, ADisplacedCardKeepsItsOwner) {
  const MigratedTree place;
  auto ledger = place.open();
  require(ledger.adopt(first_slot, card_a, Owner::Vm, AllocationMode::Vm));
  require(ledger.claim({.id = "1", .owner = Owner::Vm, .gpu = first_slot, .what = "VM db"}));
  require(ledger.adopt(first_slot, card_b, Owner::Plugin, AllocationMode::Whole));
  EXPECT_EQ(ledger.state().find(first_slot)->owner, Owner::Plugin) << "another card";
  EXPECT_THAT(ledger.state().claims, IsEmpty());
  require(ledger.adopt(third_slot, card_a, Owner::Plugin, AllocationMode::Whole));
  EXPECT_EQ(ledger.state().find(third_slot)->owner, Owner::Vm) << "it came back in another slot";
  EXPECT_EQ(ledger.state().claims.at(0).gpu, third_slot);
}

}  // namespace
}  // namespace gantry::ownership
