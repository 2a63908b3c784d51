// SPDX-License-Identifier: Apache-2.0
// Compares our cache with the machine's: ldconfig prints the entries that we wrote, we read the
// entries that ldconfig wrote, and the real loader finds a library that only our cache has.
#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <set>

namespace gantry::loader {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kLdconfig = "/sbin/ldconfig";
constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";
constexpr const char* kCache = "/etc/ld.so.cache";

// "name => path" of each line, in order.
std::vector<std::string> printed_by_ldconfig(const std::string& cache) {
  const auto result = sys::run_command({kLdconfig, "-p", "-C", cache}, 20s);
  std::vector<std::string> found;
  if (!result.ok()) return found;
  for (auto line : lines(result->output)) {
    const auto bracket = line.find(" (");
    const auto arrow = line.find(" => ");
    if (!line.starts_with('\t') || arrow == std::string_view::npos) continue;
    found.push_back(fmt::format("{}{}", line.substr(1, bracket - 1), line.substr(arrow)));
  }
  return found;
}

std::vector<std::string> printed(const LdCache& cache) {
  std::vector<std::string> found;
  for (const auto& entry : cache.entries)
    found.push_back(fmt::format("{} => {}", entry.name, entry.path));
  return found;
}

Result<LdCache> machine_cache() {
  GANTRY_TRY(const auto host, sys::Host::at("/"));
  GANTRY_TRY(const auto bytes, host.read(kCache));
  return parse_ld_cache(bytes);
}

class RealCache : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kLdconfig)) GTEST_SKIP() << "no ldconfig on this machine";
    if (!std::filesystem::exists(kCache)) GTEST_SKIP() << "no " << kCache << " on this machine";
  }
};

TEST_F(RealCache, WeReadWhatLdconfigPrints) {
  const auto cache = machine_cache();
  ASSERT_TRUE(cache.ok()) << cache.error().text();
  EXPECT_EQ(printed(*cache), printed_by_ldconfig(kCache));
}

TEST_F(RealCache, LdconfigReadsWhatWeWriteInTheSameOrder) {
  auto cache = *machine_cache();
  const auto before = printed(cache);
  std::reverse(cache.entries.begin(), cache.entries.end());
  // Names that occur twice keep the order given, which is now reversed: keep one of each.
  std::set<std::string> seen;
  std::erase_if(cache.entries, [&](const LdCacheEntry& e) { return !seen.insert(e.name).second; });
  test::Tree tree;
  for (const auto format : {LdCacheFormat::New, LdCacheFormat::Combined}) {
    cache.format = format;
    tree.file("cache", *serialize_ld_cache(cache));
    const auto sorted = *parse_ld_cache(*serialize_ld_cache(cache));
    EXPECT_EQ(printed_by_ldconfig(tree.path("cache")), printed(sorted));
  }
  EXPECT_TRUE(seen.size() != before.size() ||
              printed(*parse_ld_cache(*serialize_ld_cache(cache))) == before);
}

// Mounts a cache over the machine's, in a new mount namespace, and runs the real loader.
Result<sys::CommandResult> ask_loader(const std::string& cache, std::string_view library) {
  const auto script = fmt::format("mount --bind {} {} && LD_PRELOAD={} exec {} --list /bin/true",
                                  cache, kCache, library, kLoader);
  return sys::run_command({"unshare", "--mount", "--map-root-user", "sh", "-c", script}, 20s);
}

class RealLoader : public RealCache {
 protected:
  void SetUp() override {
    RealCache::SetUp();
    if (IsSkipped()) return;
    if (!std::filesystem::exists(kLoader)) GTEST_SKIP() << "no " << kLoader;
    const auto tried = ask_loader(kCache, "");
    if (!tried.ok() || tried->status != 0) GTEST_SKIP() << "no mount namespace to be had here";
    const auto cache = *machine_cache();
    for (const auto& entry : cache.entries) {
      if (entry.name == "libm.so.6" && entry.is_64bit()) model_ = entry.path;
    }
    if (model_.empty()) GTEST_SKIP() << "libm.so.6 is not in " << kCache;
    for (const auto* name : {"/plain", "/hwcaps"}) {
      tree_.directory(name);
      std::filesystem::copy_file(model_, tree_.path(std::string(name) + "/libgantry-probe.so.1"));
    }
  }

  std::string model_;
  test::Tree tree_;
};

TEST_F(RealLoader, FindsALibraryThatOnlyOurCacheNames) {
  auto cache = *machine_cache();
  EXPECT_THAT(ask_loader(kCache, "libgantry-probe.so.1")->output, HasSubstr("cannot be preloaded"));
  for (const auto format : {LdCacheFormat::New, LdCacheFormat::Combined}) {
    auto ours = cache;
    ours.format = format;
    ours.entries.push_back(
        {.name = "libgantry-probe.so.1", .path = tree_.path("plain/libgantry-probe.so.1")});
    tree_.file("cache", *serialize_ld_cache(ours));
    const auto answer = ask_loader(tree_.path("cache"), "libgantry-probe.so.1");
    EXPECT_THAT(answer->output, HasSubstr(tree_.path("plain/libgantry-probe.so.1")));
    EXPECT_THAT(answer->output, Not(HasSubstr("cannot")));
  }
}

TEST_F(RealLoader, PrefersTheHwcapsEntryOfOurCache) {
  const auto isa = sys::run_command({kLoader, "--help"}, 20s);
  if (!isa.ok() || !contains(isa->output, "x86-64-v2 (supported, searched)")) {
    GTEST_SKIP() << "this loader or processor knows no x86-64-v2";
  }
  auto cache = *machine_cache();
  cache.entries.push_back(
      {.name = "libgantry-probe.so.1", .path = tree_.path("plain/libgantry-probe.so.1")});
  cache.entries.push_back({.name = "libgantry-probe.so.1",
                           .path = tree_.path("hwcaps/libgantry-probe.so.1"),
                           .hwcaps = "x86-64-v2"});
  tree_.file("cache", *serialize_ld_cache(cache));
  EXPECT_THAT(ask_loader(tree_.path("cache"), "libgantry-probe.so.1")->output,
              HasSubstr(tree_.path("hwcaps/libgantry-probe.so.1")));
}

}  // namespace
}  // namespace gantry::loader
