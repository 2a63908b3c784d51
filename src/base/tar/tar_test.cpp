// SPDX-License-Identifier: Apache-2.0
#include "base/tar/tar.hpp"

#include "base/sys/child.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::tar {
namespace {

using ::testing::HasSubstr;

// The system's own tar must understand it.
std::string listed_by_tar(const std::vector<ArchiveFile>& files) {
  test::Tree tree;
  tree.file("report.tar", to_tar(files, 1'700'000'000));
  const auto run =
      sys::run_command({"tar", "--utc", "-tvf", tree.path("report.tar")}, std::chrono::seconds(10));
  return run.ok() ? run->output : run.error().text();
}

TEST(Tar, IsReadByTar) {
  const auto text = listed_by_tar({{"report/a.txt", "hello\n"}, {"report/empty", ""}});
  EXPECT_THAT(text, HasSubstr("-rw-r--r-- root/root         6 2023-11-14 22:13 report/a.txt\n"));
  EXPECT_THAT(text, HasSubstr("0 2023-11-14 22:13 report/empty\n"));
}

TEST(Tar, HasDirectoriesAndModes) {
  const auto text = listed_by_tar({{"a/", "", 0755}, {"a/program", "x", 04755}});
  EXPECT_THAT(text, HasSubstr("drwxr-xr-x root/root         0 2023-11-14 22:13 a/\n"));
  EXPECT_THAT(text, HasSubstr("-rwsr-xr-x root/root         1 2023-11-14 22:13 a/program\n"));
}

TEST(Tar, KeepsContentOfEveryLength) {
  for (const std::size_t size : {1U, 511U, 512U, 513U, 1024U}) {
    const auto bytes = to_tar({{"a", std::string(size, 'x')}, {"b", "end"}}, 0);
    EXPECT_EQ(bytes.size() % 512, 0U);
    EXPECT_EQ(bytes.substr(512, size), std::string(size, 'x'));
    EXPECT_EQ(bytes.substr(512 + (size + 511) / 512 * 512, 1), "b") << size;
  }
}

TEST(Tar, SplitsALongName) {
  const auto name = "report/" + std::string(120, 'd') + "/" + std::string(90, 'n');
  EXPECT_THAT(listed_by_tar({{name, "x"}}), HasSubstr(name + "\n"));
  const auto longer = "report/" + std::string(200, 'n');
  EXPECT_THAT(listed_by_tar({{longer, "x"}}), HasSubstr(std::string(100, 'n') + "\n"));
}

}  // namespace
}  // namespace gantry::tar
